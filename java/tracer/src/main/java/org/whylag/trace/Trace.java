package org.whylag.trace;

/**
 * What is known of one message so far. Allocate one in each slot of the ring buffer: it travels with
 * the message, so handing over to another thread is free. Every point has a cell of its own, so
 * stages that run at the same time do not meet.
 */
public final class Trace {
    /**
     * Two words each, as in a record: first the points, then the publishes. The word of a publish's
     * name has its number in the upper half, as {@link Flow#publishName} gives it.
     */
    static final int POINT_CELLS = 2 * FlowDescriptor.MAX_POINTS;
    static final int CELLS = POINT_CELLS + 2 * FlowDescriptor.MAX_PUBLISHES;

    final long[] cells = new long[CELLS];
    /** Null: nothing is being traced, because tracing is off or the message has ended. */
    Flow flow;
    long id;
    long t0;
    /** 0 until the logic has started. */
    long logicStart;
    int depth;
    int publishes;
    long longestGap;
    /** Logic start or the last publish. */
    long last;

    /**
     * A message was received.
     *
     * @param rxNanos when, by System.nanoTime(): the earlier the stamp, the more of its waiting shows
     */
    public void begin(Flow flow, long id, long rxNanos) {
        Flow before = this.flow;
        if (before != null) {
            before.countAbandoned();
        }
        if (!flow.isLive()) {
            this.flow = null;
            return;
        }
        flow.countBegun();
        for (int point = 0; point < flow.points; point++) {
            cells[2 * point] = 0;
        }
        this.id = id;
        t0 = rxNanos;
        logicStart = 0;
        publishes = 0;
        longestGap = 0;
        this.flow = flow;
    }

    /** The message passed an infrastructure point; any thread may report it. */
    public void mark(int point) {
        Flow flow = this.flow;
        if (flow == null) {
            return;
        }
        long now = System.nanoTime();
        if (point < 0 || point >= flow.points) {
            flow.countUndeclared();
            return;
        }
        cells[2 * point] = now;
        cells[2 * point + 1] = Integer.toUnsignedLong(flow.tracer.threadIndex());
    }

    int publishesInCells() {
        return Math.min(publishes, FlowDescriptor.MAX_PUBLISHES);
    }
}
