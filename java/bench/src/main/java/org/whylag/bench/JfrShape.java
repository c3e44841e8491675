package org.whylag.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Recording;
import jdk.jfr.StackTrace;

/** JFR: an event for each mark, without a stack; recorded to disk, as it is used. */
final class JfrShape implements Shape, AutoCloseable {
    @Name("bench.Mark")
    @Category("bench")
    @StackTrace(false)
    static final class Mark extends Event {
        long id;
        int point;
    }

    private final Recording recording = new Recording();
    private final Path file;
    private final long[] ids = new long[SLOTS];

    JfrShape() throws IOException {
        file = Files.createTempFile("whylag-bench", ".jfr");
        recording.enable(Mark.class);
        recording.setMaxSize(64 << 20);
        recording.setToDisk(true);
        recording.setDestination(file);
        recording.start();
    }

    @Override
    public void receive(int slot, long id) {
        ids[slot] = id;
        mark(id, 0);
        mark(id, 1);
        mark(id, 2);
    }

    @Override
    public void handle(int slot) {
        for (int point = 3; point < MARKS; point++) {
            mark(ids[slot], point);
        }
    }

    /** A commit without begin takes the time once. */
    private static void mark(long id, int point) {
        Mark mark = new Mark();
        mark.id = id;
        mark.point = point;
        mark.commit();
    }

    @Override
    public void close() throws IOException {
        recording.close();
        Files.deleteIfExists(file);
    }
}
