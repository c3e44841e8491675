package org.whylag.exchange;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The fault --slow-journal: another process that writes and fsyncs on the journal's disk. */
final class Neighbour {
    private static final int CHUNK = 4 << 20;
    private static final int CHUNKS = 8;

    /** Argument: the folder. Runs until standard input ends. */
    public static void main(String[] arguments) throws IOException {
        Part.endWithParent();
        Path path = Files.createTempFile(Path.of(arguments[0]), "exchange", ".neighbour");
        try (FileChannel file =
                FileChannel.open(
                        path, StandardOpenOption.WRITE, StandardOpenOption.DELETE_ON_CLOSE)) {
            ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK);
            for (int i = 0; ; i++) {
                chunk.clear();
                file.write(chunk, (long) (i % CHUNKS) * CHUNK);
                file.force(true);
            }
        }
    }

    private Neighbour() {}
}
