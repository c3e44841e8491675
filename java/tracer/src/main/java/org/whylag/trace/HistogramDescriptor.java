package org.whylag.trace;

/**
 * A block: the histograms of one thread for one flow.
 *
 * <pre>
 *   0 state (4), thread (4), flow (4), reserved; then 28 histograms:
 *
 *   0 count    8 sum    16 second    24 maximum in it    32 earlier second    40 its maximum
 *   64 1,056 buckets of 8 bytes
 * </pre>
 */
final class HistogramDescriptor {
    static final int STATE = 0;
    static final int THREAD = 4;
    static final int FLOW = 8;
    static final int BLOCK_HEAD = 64;

    static final int COUNT = 0;
    static final int SUM = 8;
    static final int SECOND = 16;
    static final int MAXIMUM = 24;
    static final int EARLIER_SECOND = 32;
    static final int EARLIER_MAXIMUM = 40;
    static final int BUCKETS = 64;

    static final int BUCKET_COUNT = 1056;
    static final int HISTOGRAM_LENGTH = BUCKETS + BUCKET_COUNT * Long.BYTES;

    static final int TOTAL = 0;
    static final int INFRASTRUCTURE = 1;
    static final int LOGIC = 2;
    static final int GAP = 3;
    static final int FIRST_POINT = 4;
    static final int FIRST_PUBLISH = 12;
    static final int METRICS = 28;

    static final int LENGTH = BLOCK_HEAD + METRICS * HISTOGRAM_LENGTH;

    /** Precision p = 5: 32 buckets per power of two, each at most 3.1 % wide. */
    private static final int PRECISION = 5;

    static int bucket(long value) {
        int shift = Math.max(0, 63 - PRECISION - Long.numberOfLeadingZeros(value | 1));
        return Math.min(BUCKET_COUNT - 1, (shift << PRECISION) + (int) (value >>> shift));
    }

    private HistogramDescriptor() {}
}
