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
        enterSecond(now);
        addBucket(base(HistogramDescriptor.GAP), HistogramDescriptor.bucket(nanos));
        if (publish != 0) {
            add(named(publish), nanos);
        }
    }

    void ended(Trace trace, int points, long end) {
        enterSecond(end);
        add(base(HistogramDescriptor.TOTAL), end - trace.t0);
        add(base(HistogramDescriptor.INFRASTRUCTURE), trace.logicStart - trace.t0);
        add(base(HistogramDescriptor.LOGIC), end - trace.logicStart);
        for (int point = 0; point < points; point++) {
            long time = trace.cells[2 * point];
            if (time != 0) {
                add(base(HistogramDescriptor.FIRST_POINT + point), Math.max(0, time - trace.t0));
            }
        }
        if (trace.publishes > 0) {
            addGaps(trace);
        }
    }

    /** Of publishes of one name in a row, only the buckets are counted one by one. */
    private void addGaps(Trace trace) {
        int gaps = base(HistogramDescriptor.GAP);
        long[] cells = trace.cells;
        long before = trace.logicStart;
        int cellsEnd = Trace.POINT_CELLS + 2 * trace.publishesInCells();
        int cell = Trace.POINT_CELLS;
        while (cell < cellsEnd) {
            long publish = cells[cell + 1];
            int named = publish == 0 ? 0 : named(publish);
            long begin = before;
            long longest = 0;
            int count = 0;
            do {
                long nanos = cells[cell] - before;
                int bucket = HistogramDescriptor.bucket(nanos);
                addBucket(gaps, bucket);
                if (publish != 0) {
                    addBucket(named, bucket);
                }
                longest = Math.max(longest, nanos);
                before = cells[cell];
                count++;
                cell += 2;
            } while (cell < cellsEnd && cells[cell + 1] == publish);
            if (publish != 0) {
                addCounted(named, count, before - begin, longest);
            }
        }
        addCounted(gaps, trace.publishes, trace.last - trace.logicStart, trace.longestGap);
    }

    /** The first word of a histogram. */
    private static int base(int metric) {
        return FIRST + metric * EACH;
    }

    private static int named(long publish) {
        return base(HistogramDescriptor.FIRST_PUBLISH + Flow.publishNumber(publish));
    }

    private void add(int histogram, long value) {
        addBucket(histogram, HistogramDescriptor.bucket(value));
        addCounted(histogram, 1, value, value);
    }

    /** The bucket alone: {@link #addCounted} follows. */
    private void addBucket(int histogram, int bucket) {
        words.add(histogram + bucket, BUCKETS, 1);
    }

    /** Values whose buckets are counted: how many, their sum, and the greatest. */
    private void addCounted(int histogram, long count, long sum, long greatest) {
        words.add(histogram, COUNT, count);
        words.add(histogram, SUM, sum);
        if (greatest > words.get(histogram, MAXIMUM)) {
            words.put(histogram, MAXIMUM, greatest);
        }
    }

    /** Values measured at {@code now} follow. One look for all: a message counts into ten. */
    private void enterSecond(long now) {
        long second = now / NANOS_PER_SECOND;
        // Every message counts into this one.
        if (second != words.get(base(HistogramDescriptor.TOTAL), SECOND)) {
            for (int metric = 0; metric < HistogramDescriptor.METRICS; metric++) {
                next(base(metric), second);
            }
            // The maxima that follow belong to this second.
            VarHandle.releaseFence();
        }
    }

    /**
     * In this order a reader that looks at both seconds twice knows what it has. A second without
     * values leaves the earlier one as it is.
     */
    private void next(int histogram, long second) {
        long maximum = words.get(histogram, MAXIMUM);
        if (maximum != 0) {
            words.putRelease(histogram, EARLIER_SECOND, 0);
            words.putRelease(histogram, EARLIER_MAXIMUM, maximum);
            words.putRelease(histogram, EARLIER_SECOND, words.get(histogram, SECOND));
            words.putRelease(histogram, MAXIMUM, 0);
        }
        words.putRelease(histogram, SECOND, second);
    }
}
