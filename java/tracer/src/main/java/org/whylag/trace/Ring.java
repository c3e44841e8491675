package org.whylag.trace;

import java.lang.invoke.VarHandle;

/** A thread's ring of records. A reader that sees both sequences equal k + 1 has a whole record. */
final class Ring {
    private final Memory memory;
    private final int base;
    private final int mask;
    private final int thread;
    private final int countAt;
    private long written;

    Ring(Memory memory, int section, int records, int thread, int countAt) {
        this.memory = memory;
        this.base = section + thread * records * RecordDescriptor.LENGTH;
        this.mask = records - 1;
        this.thread = thread;
        this.countAt = countAt;
    }

    void write(Trace trace, Flow flow, long end, boolean isSlow) {
        int at = base + ((int) written & mask) * RecordDescriptor.LENGTH;
        memory.putLong(at + RecordDescriptor.HEAD, 0);
        VarHandle.releaseFence();
        memory.putLong(at + RecordDescriptor.MESSAGE_ID, trace.id);
        memory.putLong(
                at + RecordDescriptor.FLOW_AND_FLAGS, flow.id | (isSlow ? RecordDescriptor.SLOW : 0));
        memory.putLong(at + RecordDescriptor.T0, trace.t0);
        memory.putLong(at + RecordDescriptor.LOGIC_START, trace.logicStart);
        memory.putLong(at + RecordDescriptor.END, end);
        memory.putLong(
                at + RecordDescriptor.DEPTH_AND_THREAD,
                Integer.toUnsignedLong(trace.depth) | (long) thread << 32);
        memory.putLong(at + RecordDescriptor.PUBLISHES, trace.publishes);
        memory.putLong(at + RecordDescriptor.LONGEST_GAP, trace.longestGap);
        copy(trace, at, 0, 2 * flow.points);
        copy(
                trace,
                at,
                Trace.POINT_CELLS,
                2 * Math.min(trace.publishes, FlowDescriptor.MAX_PUBLISHES));
        VarHandle.releaseFence();
        written++;
        memory.putLong(at + RecordDescriptor.TAIL, written);
        memory.putLong(at + RecordDescriptor.HEAD, written);
        memory.putLongRelease(countAt, written);
    }

    /** The reader ignores cells beyond those in use, so they may keep what they held. */
    private void copy(Trace trace, int at, int from, int words) {
        for (int cell = from; cell < from + words; cell++) {
            memory.putLong(
                    at + RecordDescriptor.CELLS + cell * Long.BYTES, trace.cells[cell]);
        }
    }
}
