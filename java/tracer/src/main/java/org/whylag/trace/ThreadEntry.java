package org.whylag.trace;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** A thread's entry in the table; claimed once, and kept when the thread has ended. */
final class ThreadEntry {
    private static final Path SELF = Path.of("/proc/thread-self");

    /** Position in the table, or {@link RecordDescriptor#UNKNOWN}. */
    final int index;
    /** Why the thread has no entry, else null. */
    final TraceException refusal;
    final Logic logic;

    private ThreadEntry(int index, TraceException refusal, Logic logic) {
        this.index = index;
        this.refusal = refusal;
        this.logic = logic;
    }

    /** Claims an entry for the current thread. */
    static ThreadEntry claim(Memory memory, Layout layout) {
        try {
            return claimOrThrow(memory, layout);
        } catch (TraceException e) {
            memory.addLong(HeaderDescriptor.DROPPED_THREADS, 1);
            return new ThreadEntry(RecordDescriptor.UNKNOWN, e, Logic.off());
        }
    }

    private static ThreadEntry claimOrThrow(Memory memory, Layout layout) {
        if (VirtualThreads.isCurrent()) {
            throw new TraceException(
                    "Cannot trace a virtual thread: it has no thread of the kernel to itself. Run the business logic on a platform thread.");
        }
        for (int index = 0; index < layout.threads; index++) {
            int at = layout.threadsAt + index * ThreadDescriptor.LENGTH;
            if (memory.compareAndSetInt(
                    at + ThreadDescriptor.STATE, ThreadDescriptor.FREE, ThreadDescriptor.CLAIMING)) {
                describe(memory, at);
                memory.putIntRelease(at + ThreadDescriptor.STATE, ThreadDescriptor.CLAIMED);
                return new ThreadEntry(index, null, new Logic(memory, layout, index));
            }
        }
        throw new TraceException(
                "Cannot trace another thread: all %d entries are taken. Ask for more with Tracer.with().threads(n), at most %d."
                        .formatted(layout.threads, ThreadDescriptor.MAX_THREADS));
    }

    private static void describe(Memory memory, int at) {
        try {
            // "1234/task/1240"; only the thread itself can read its own.
            int tid =
                    Integer.parseInt(Files.readSymbolicLink(SELF).getFileName().toString());
            long start = Identity.start(Files.readString(SELF.resolve("stat")));
            byte[] name =
                    Files.readString(SELF.resolve("comm")).strip().getBytes(StandardCharsets.UTF_8);
            memory.putInt(at + ThreadDescriptor.TID, tid);
            memory.putLong(at + ThreadDescriptor.START, start);
            memory.putBytes(
                    at + ThreadDescriptor.NAME,
                    Arrays.copyOf(
                            name, Math.min(name.length, ThreadDescriptor.NAME_LENGTH - 1)));
        } catch (IOException e) {
            throw new TraceException("Cannot trace this thread: /proc/thread-self: " + e, e);
        }
    }
}
