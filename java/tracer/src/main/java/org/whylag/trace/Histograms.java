package org.whylag.trace;

import static org.whylag.trace.HistogramDescriptor.BUCKETS;
import static org.whylag.trace.HistogramDescriptor.COUNT;
import static org.whylag.trace.HistogramDescriptor.EARLIER_MAXIMUM;
import static org.whylag.trace.HistogramDescriptor.EARLIER_SECOND;
import static org.whylag.trace.HistogramDescriptor.MAXIMUM;
import static org.whylag.trace.HistogramDescriptor.SECOND;
import static org.whylag.trace.HistogramDescriptor.SUM;

import java.lang.invoke.VarHandle;

/** A block: the histograms of one thread for one flow. Only this thread writes them. */
final class Histograms {
    private static final long NANOS_PER_SECOND = 1_000_000_000;
    private static final int FIRST = HistogramDescriptor.BLOCK_HEAD / Long.BYTES;
    private static final int EACH = HistogramDescriptor.HISTOGRAM_LENGTH / Long.BYTES;

    private final Words words;

    private Histograms(Words words) {
        this.words = words;
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
                return new Histograms(memory.words(at, HistogramDescriptor.LENGTH));
            }
        }
        return null;
    }

    /** A publish beyond those that have a cell. */
    void publishedBeyondCells(long now, long nanos, long publish) {
        addBucket(HistogramDescriptor.GAP, nanos);
        addNamed(publish, nanos, now / NANOS_PER_SECOND);
    }

    void ended(Trace trace, int points, long end) {
        long second = end / NANOS_PER_SECOND;
        add(HistogramDescriptor.TOTAL, end - trace.t0, second);
        add(HistogramDescriptor.INFRASTRUCTURE, trace.logicStart - trace.t0, second);
        add(HistogramDescriptor.LOGIC, end - trace.logicStart, second);
        for (int point = 0; point < points; point++) {
            long time = trace.cells[2 * point];
            if (time != 0) {
                long nanos = Math.max(0, time - trace.t0);
                add(HistogramDescriptor.FIRST_POINT + point, nanos, second);
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
            addBucket(HistogramDescriptor.GAP, nanos);
            addNamed(trace.cells[cell + 1], nanos, second);
        }
        addCounted(
                HistogramDescriptor.GAP,
                trace.publishes,
                trace.last - trace.logicStart,
                trace.longestGap,
                second);
    }

    private void addNamed(long publish, long nanos, long second) {
        if (publish != 0) {
            add(HistogramDescriptor.FIRST_PUBLISH + Flow.publishNumber(publish), nanos, second);
        }
    }

    /** {@code second}: when the value is counted. */
    void add(int metric, long value, long second) {
        addBucket(metric, value);
        addCounted(metric, 1, value, value, second);
    }

    /** The bucket alone: {@link #addCounted} follows. */
    private void addBucket(int metric, long value) {
        words.add(FIRST + metric * EACH + HistogramDescriptor.bucket(value), BUCKETS, 1);
    }

    /** Values whose buckets are counted: how many, their sum, and the greatest. */
    private void addCounted(int metric, long count, long sum, long greatest, long second) {
        int histogram = FIRST + metric * EACH;
        words.add(histogram, COUNT, count);
        words.add(histogram, SUM, sum);
        if (words.get(histogram, SECOND) != second) {
            next(histogram, second);
        }
        if (greatest > words.get(histogram, MAXIMUM)) {
            words.put(histogram, MAXIMUM, greatest);
        }
    }

    /** In this order a reader that looks at both seconds twice knows what it has. */
    private void next(int histogram, long second) {
        words.putRelease(histogram, EARLIER_SECOND, 0);
        words.putRelease(histogram, EARLIER_MAXIMUM, words.get(histogram, MAXIMUM));
        words.putRelease(histogram, EARLIER_SECOND, words.get(histogram, SECOND));
        words.putRelease(histogram, MAXIMUM, 0);
        words.putRelease(histogram, SECOND, second);
        // The maximum that follows belongs to this second.
        VarHandle.releaseFence();
    }
}
