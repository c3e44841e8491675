package org.whylag.trace;

/**
 * The histograms of one thread for one flow. Only this thread writes them, so it keeps what it wrote
 * last in its own memory instead of reading it back.
 */
final class Histograms {
    private static final long SECOND = 1_000_000_000;

    private final Memory memory;
    private final int base;
    private final long[] counts = new long[HistogramDescriptor.METRICS];
    private final long[] sums = new long[HistogramDescriptor.METRICS];
    private final long[] seconds = new long[HistogramDescriptor.METRICS];
    private final long[] maxima = new long[HistogramDescriptor.METRICS];
    private long second;

    private Histograms(Memory memory, int block) {
        this.memory = memory;
        this.base = block + HistogramDescriptor.BLOCK_HEAD;
    }

    /** Claims a block, or gives null if all are taken. */
    static Histograms claim(Memory memory, Layout layout, int thread, int flow) {
        for (int i = 0; i < layout.blocks; i++) {
            int at = layout.blocksAt + i * HistogramDescriptor.LENGTH;
            if (memory.compareAndSetInt(
                    at + HistogramDescriptor.STATE,
                    ThreadDescriptor.FREE,
                    ThreadDescriptor.CLAIMING)) {
                memory.putIntOpaque(at + HistogramDescriptor.THREAD, thread);
                memory.putIntOpaque(at + HistogramDescriptor.FLOW, flow);
                memory.putIntRelease(at + HistogramDescriptor.STATE, ThreadDescriptor.CLAIMED);
                return new Histograms(memory, at);
            }
        }
        return null;
    }

    /** When the values that follow are counted. */
    void setTime(long nanos) {
        second = nanos / SECOND;
    }

    void add(int metric, long value) {
        int at = base + metric * HistogramDescriptor.HISTOGRAM_LENGTH;
        if (seconds[metric] != second) {
            nextSecond(metric, at);
        }
        int bucket =
                at + HistogramDescriptor.BUCKETS + HistogramDescriptor.bucket(value) * Long.BYTES;
        memory.putLongOpaque(bucket, memory.getLongOpaque(bucket) + 1);
        memory.putLongOpaque(at + HistogramDescriptor.COUNT, ++counts[metric]);
        memory.putLongOpaque(at + HistogramDescriptor.SUM, sums[metric] += value);
        if (value > maxima[metric]) {
            maxima[metric] = value;
            memory.putLongOpaque(at + HistogramDescriptor.MAXIMUM, value);
        }
    }

    /** In this order a reader that looks at both seconds twice knows what it has. */
    private void nextSecond(int metric, int at) {
        memory.putLongRelease(at + HistogramDescriptor.EARLIER_SECOND, 0);
        memory.putLongRelease(at + HistogramDescriptor.EARLIER_MAXIMUM, maxima[metric]);
        memory.putLongRelease(at + HistogramDescriptor.EARLIER_SECOND, seconds[metric]);
        memory.putLongRelease(at + HistogramDescriptor.MAXIMUM, 0);
        memory.putLongRelease(at + HistogramDescriptor.SECOND, second);
        seconds[metric] = second;
        maxima[metric] = 0;
    }
}
