package org.whylag.trace;

/**
 * What the thread that runs the business logic reports of its messages. It belongs to that thread,
 * which is thereby the only writer of its rings, histograms and current message.
 */
public final class Logic {
    private final Thread owner;
    private final Memory memory;
    private final Layout layout;
    private final int thread;
    private final CurrentMessage current;
    private final Ring recent;
    private final Ring slow;
    private final Histograms[] histograms = new Histograms[FlowDescriptor.MAX_FLOWS];
    private final boolean[] noRoom = new boolean[FlowDescriptor.MAX_FLOWS];

    Logic(Memory memory, Layout layout, int thread) {
        this.owner = Thread.currentThread();
        this.memory = memory;
        this.layout = layout;
        this.thread = thread;
        Words entry =
                memory.words(
                        layout.threadsAt + thread * ThreadDescriptor.LENGTH, ThreadDescriptor.LENGTH);
        this.current = new CurrentMessage(entry);
        this.recent =
                new Ring(
                        ring(layout.recentAt, layout.recentPerThread),
                        layout.recentPerThread,
                        entry,
                        ThreadDescriptor.RECENT_COUNT,
                        thread);
        this.slow =
                new Ring(
                        ring(layout.slowAt, layout.slowPerThread),
                        layout.slowPerThread,
                        entry,
                        ThreadDescriptor.SLOW_COUNT,
                        thread);
    }

    private Words ring(int section, int records) {
        int length = records * RecordDescriptor.LENGTH;
        return memory.words(section + thread * length, length);
    }

    private Logic() {
        owner = null;
        memory = null;
        layout = null;
        thread = RecordDescriptor.UNKNOWN;
        current = null;
        recent = null;
        slow = null;
    }

    static Logic off() {
        return new Logic();
    }

    /** The business logic begins with this message. */
    public void start(Trace trace) {
        start(trace, RecordDescriptor.UNKNOWN);
    }

    /** As above. {@code depth}: how many messages wait behind this one. */
    public void start(Trace trace, int depth) {
        Flow flow = trace.flow;
        if (flow == null) {
            return;
        }
        long now = Math.max(System.nanoTime(), trace.t0);
        if (Thread.currentThread() != owner) {
            flow.tracer.countDroppedThread();
            return;
        }
        trace.logicStart = now;
        trace.last = now;
        trace.depth = depth;
        current.started(trace);
    }

    /** The logic has published a message of the kind that {@link Flow#publish} numbered. */
    public void published(Trace trace, int publish) {
        Flow flow = trace.flow;
        if (flow == null || trace.logicStart == 0) {
            return;
        }
        long now = Math.max(System.nanoTime(), trace.last);
        long gap = now - trace.last;
        long name = flow.publishName(publish);
        if (trace.publishes < FlowDescriptor.MAX_PUBLISHES) {
            // Counted at the end, all at once: here the next look at the clock would wait for it.
            int cell = Trace.POINT_CELLS + 2 * trace.publishes;
            trace.cells[cell] = now;
            trace.cells[cell + 1] = name;
        } else {
            Histograms histograms = histogramsOf(flow);
            if (histograms != null) {
                histograms.publishedBeyondCells(now, gap, name);
            }
        }
        trace.publishes++;
        trace.longestGap = Math.max(trace.longestGap, gap);
        trace.last = now;
        current.marked(now, (int) name);
    }

    /** The logic is done with this message. One that was never started counts as abandoned. */
    public void end(Trace trace) {
        Flow flow = trace.flow;
        if (flow == null) {
            return;
        }
        long end = Math.max(System.nanoTime(), trace.last);
        trace.flow = null;
        if (trace.logicStart == 0) {
            flow.countAbandoned();
            return;
        }
        Histograms histograms = histogramsOf(flow);
        if (histograms != null) {
            histograms.ended(trace, flow.points, end);
        }
        boolean isSlow = end - trace.t0 >= flow.threshold();
        recent.write(trace, flow, end, isSlow);
        if (isSlow) {
            slow.write(trace, flow, end, true);
        }
        current.ended();
    }

    /** Null, and counted once, if no block is free. */
    private Histograms histogramsOf(Flow flow) {
        Histograms known = histograms[flow.id - 1];
        return known != null || noRoom[flow.id - 1] ? known : claimHistograms(flow);
    }

    private Histograms claimHistograms(Flow flow) {
        Histograms claimed = Histograms.claim(memory, layout, thread, flow.id);
        histograms[flow.id - 1] = claimed;
        if (claimed == null) {
            noRoom[flow.id - 1] = true;
            flow.tracer.countDroppedName();
        }
        return claimed;
    }
}
