package org.whylag.trace;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Memory that is in no trace file. */
final class TestMemory {
    static Memory of(int length) {
        try {
            Path path = Files.createTempFile("whylag-test", null);
            try (FileChannel channel =
                    FileChannel.open(
                            path,
                            StandardOpenOption.READ,
                            StandardOpenOption.WRITE,
                            StandardOpenOption.DELETE_ON_CLOSE)) {
                return new Memory(channel.map(FileChannel.MapMode.READ_WRITE, 0, length));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private TestMemory() {}
}
