package org.whylag.trace;

/**
 * One histogram. Only its thread writes it, so it keeps what it wrote last in its own memory instead
 * of reading it back.
 */
final class Histogram {
    private final Memory memory;
    private final int at;
    private long count;
    private long sum;
    private long second;
    private long maximum;

    Histogram(Memory memory, int at) {
        this.memory = memory;
        this.at = at;
    }

    /** {@code second}: when the value is counted. */
    void add(long value, long second) {
        if (this.second != second) {
            next(second);
        }
        int bucket =
                at + HistogramDescriptor.BUCKETS + HistogramDescriptor.bucket(value) * Long.BYTES;
        memory.putLong(bucket, memory.getLong(bucket) + 1);
        memory.putLong(at + HistogramDescriptor.COUNT, ++count);
        memory.putLong(at + HistogramDescriptor.SUM, sum += value);
        if (value > maximum) {
            maximum = value;
            memory.putLong(at + HistogramDescriptor.MAXIMUM, value);
        }
    }

    /** In this order a reader that looks at both seconds twice knows what it has. */
    private void next(long second) {
        memory.putLongRelease(at + HistogramDescriptor.EARLIER_SECOND, 0);
        memory.putLongRelease(at + HistogramDescriptor.EARLIER_MAXIMUM, maximum);
        memory.putLongRelease(at + HistogramDescriptor.EARLIER_SECOND, this.second);
        memory.putLongRelease(at + HistogramDescriptor.MAXIMUM, 0);
        memory.putLongRelease(at + HistogramDescriptor.SECOND, second);
        this.second = second;
        maximum = 0;
    }
}
