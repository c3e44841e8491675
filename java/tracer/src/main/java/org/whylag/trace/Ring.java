package org.whylag.trace;

import java.lang.invoke.VarHandle;

/** A thread's ring of records. A reader that sees both sequences equal k + 1 has a whole record. */
final class Ring {
    private static final int RECORD_WORDS = RecordDescriptor.LENGTH / Long.BYTES;

    private final Words records;
    private final int mask;
    private final Words entry;
    private final int countField;
    private final int thread;
    private long written;

    /** {@code entry} and {@code countField}: where the thread says how many records there were. */
    Ring(Words records, int size, Words entry, int countField, int thread) {
        this.records = records;
        this.mask = size - 1;
        this.entry = entry;
        this.countField = countField;
        this.thread = thread;
    }

    void write(Trace trace, Flow flow, long end, boolean isSlow) {
        int at = ((int) written & mask) * RECORD_WORDS;
        records.put(at, RecordDescriptor.HEAD, 0);
        VarHandle.releaseFence();
        records.put(at, RecordDescriptor.MESSAGE_ID, trace.id);
        records.put(
                at, RecordDescriptor.FLOW_AND_FLAGS, flow.id | (isSlow ? RecordDescriptor.SLOW : 0));
        records.put(at, RecordDescriptor.T0, trace.t0);
        records.put(at, RecordDescriptor.LOGIC_START, trace.logicStart);
        records.put(at, RecordDescriptor.END, end);
        records.put(
                at,
                RecordDescriptor.DEPTH_AND_THREAD,
                Integer.toUnsignedLong(trace.depth) | (long) thread << 32);
        records.put(at, RecordDescriptor.PUBLISHES, trace.publishes);
        records.put(at, RecordDescriptor.LONGEST_GAP, trace.longestGap);
        // The reader ignores cells beyond those in use, so they may keep what they held.
        copy(trace, at, 0, 2 * flow.points);
        copy(trace, at, Trace.POINT_CELLS, 2 * trace.publishesInCells());
        written++;
        records.putRelease(at, RecordDescriptor.TAIL, written);
        records.put(at, RecordDescriptor.HEAD, written);
        entry.putRelease(0, countField, written);
    }

    private void copy(Trace trace, int at, int from, int count) {
        for (int cell = from; cell < from + count; cell += 2) {
            records.put(at + cell, RecordDescriptor.CELLS, trace.cells[cell]);
            records.put(
                    at + cell + 1, RecordDescriptor.CELLS, Integer.toUnsignedLong((int) trace.cells[cell + 1]));
        }
    }
}
