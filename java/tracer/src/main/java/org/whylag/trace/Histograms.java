package org.whylag.trace;

import static org.whylag.trace.HistogramDescriptor.BLOCK_HEAD;
import static org.whylag.trace.HistogramDescriptor.FIRST_POINT;
import static org.whylag.trace.HistogramDescriptor.FIRST_PUBLISH;
import static org.whylag.trace.HistogramDescriptor.HISTOGRAM_LENGTH;

/** A block: the histograms of one thread for one flow. */
final class Histograms {
    private static final long SECOND = 1_000_000_000;

    private final Histogram total;
    private final Histogram infrastructure;
    private final Histogram logic;
    private final Histogram gap;
    private final Histogram[] points = new Histogram[FlowDescriptor.MAX_POINTS];
    private final Histogram[] publishes = new Histogram[FlowDescriptor.MAX_PUBLISHES];

    private Histograms(Memory memory, int block) {
        total = histogram(memory, block, HistogramDescriptor.TOTAL);
        infrastructure = histogram(memory, block, HistogramDescriptor.INFRASTRUCTURE);
        logic = histogram(memory, block, HistogramDescriptor.LOGIC);
        gap = histogram(memory, block, HistogramDescriptor.GAP);
        for (int i = 0; i < points.length; i++) {
            points[i] = histogram(memory, block, FIRST_POINT + i);
        }
        for (int i = 0; i < publishes.length; i++) {
            publishes[i] = histogram(memory, block, FIRST_PUBLISH + i);
        }
    }

    private static Histogram histogram(Memory memory, int block, int metric) {
        int at = block + BLOCK_HEAD + metric * HISTOGRAM_LENGTH;
        return new Histogram(memory.words(at, HISTOGRAM_LENGTH));
    }

    /** Claims a block, or gives null if all are taken. */
    static Histograms claim(Memory memory, Layout layout, int thread, int flow) {
        for (int i = 0; i < layout.blocks; i++) {
            int at = layout.blocksAt + i * HistogramDescriptor.LENGTH;
            if (memory.compareAndSetInt(
                    at + HistogramDescriptor.STATE,
                    ThreadDescriptor.FREE,
                    ThreadDescriptor.CLAIMING)) {
                memory.putInt(at + HistogramDescriptor.THREAD, thread);
                memory.putInt(at + HistogramDescriptor.FLOW, flow);
                memory.putIntRelease(at + HistogramDescriptor.STATE, ThreadDescriptor.CLAIMED);
                return new Histograms(memory, at);
            }
        }
        return null;
    }

    /** A publish beyond those that have a cell. */
    void publishedBeyondCells(long now, long nanos, long publish) {
        gap.addBucket(nanos);
        addNamed(publish, nanos, now / SECOND);
    }

    void ended(Trace trace, int pointCount, long end) {
        long second = end / SECOND;
        total.add(end - trace.t0, second);
        infrastructure.add(trace.logicStart - trace.t0, second);
        logic.add(end - trace.logicStart, second);
        for (int point = 0; point < pointCount; point++) {
            long time = trace.cells[2 * point];
            if (time != 0) {
                points[point].add(Math.max(0, time - trace.t0), second);
            }
        }
        if (trace.publishes > 0) {
            addGaps(trace, second);
        }
    }

    private void addGaps(Trace trace, long second) {
        long before = trace.logicStart;
        int cellsEnd = Trace.POINT_CELLS + 2 * trace.publishesInCells();
        for (int cell = Trace.POINT_CELLS; cell < cellsEnd; cell += 2) {
            long nanos = trace.cells[cell] - before;
            before = trace.cells[cell];
            gap.addBucket(nanos);
            addNamed(trace.cells[cell + 1], nanos, second);
        }
        gap.addCounted(
                trace.publishes, trace.last - trace.logicStart, trace.longestGap, second);
    }

    private void addNamed(long publish, long nanos, long second) {
        if (publish != 0) {
            publishes[Flow.publishNumber(publish)].add(nanos, second);
        }
    }
}
