package org.whylag.bench;

import java.io.IOException;
import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.Name;
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

    private final FlightRecording recording;
    private final long[] ids = new long[SLOTS];

    JfrShape() throws IOException {
        recording = new FlightRecording(Mark.class);
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
    }
}
