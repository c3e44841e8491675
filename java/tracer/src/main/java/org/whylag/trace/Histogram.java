package org.whylag.trace;

import static org.whylag.trace.HistogramDescriptor.BUCKETS;
import static org.whylag.trace.HistogramDescriptor.COUNT;
import static org.whylag.trace.HistogramDescriptor.EARLIER_MAXIMUM;
import static org.whylag.trace.HistogramDescriptor.EARLIER_SECOND;
import static org.whylag.trace.HistogramDescriptor.MAXIMUM;
import static org.whylag.trace.HistogramDescriptor.SECOND;
import static org.whylag.trace.HistogramDescriptor.SUM;

import java.lang.invoke.VarHandle;

/** One histogram, which only its thread writes. */
final class Histogram {
    private final Words words;

    Histogram(Words words) {
        this.words = words;
    }

    /** {@code second}: when the value is counted. */
    void add(long value, long second) {
        addBucket(value);
        addCounted(1, value, value, second);
    }

    /** The bucket alone: {@link #addCounted} follows. */
    void addBucket(long value) {
        words.add(HistogramDescriptor.bucket(value), BUCKETS, 1);
    }

    /** Values whose buckets are counted: how many, their sum, and the greatest. */
    void addCounted(long count, long sum, long greatest, long second) {
        words.add(0, COUNT, count);
        words.add(0, SUM, sum);
        if (words.get(0, SECOND) != second) {
            next(second);
        }
        if (greatest > words.get(0, MAXIMUM)) {
            words.put(0, MAXIMUM, greatest);
        }
    }

    /** In this order a reader that looks at both seconds twice knows what it has. */
    private void next(long second) {
        words.putRelease(0, EARLIER_SECOND, 0);
        words.putRelease(0, EARLIER_MAXIMUM, words.get(0, MAXIMUM));
        words.putRelease(0, EARLIER_SECOND, words.get(0, SECOND));
        words.putRelease(0, MAXIMUM, 0);
        words.putRelease(0, SECOND, second);
        // The maximum that follows belongs to this second.
        VarHandle.releaseFence();
    }
}
