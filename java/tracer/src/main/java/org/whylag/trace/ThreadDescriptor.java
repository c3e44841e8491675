package org.whylag.trace;

/**
 * A thread, 256 bytes; its current message has a cache line of its own.
 *
 * <pre>
 *    0 state (4), tid (4)                  64 sequence, odd while the line is being changed
 *    8 start, clock ticks since boot       72 message id
 *   16 name (comm), 16 bytes               80 flow (4), state (4): 0 none, 1 in logic
 *   32 records ever in its recent ring     88 t0
 *   40 records ever in its slow ring       96 logic start
 *                                         104 last mark
 *                                         112 name of the last mark (4)
 * </pre>
 */
final class ThreadDescriptor {
    static final int LENGTH = 256;

    static final int STATE = 0;
    static final int TID = 4;
    static final int START = 8;
    static final int NAME = 16;
    static final int RECENT_COUNT = 32;
    static final int SLOW_COUNT = 40;
    static final int SEQUENCE = 64;
    static final int MESSAGE_ID = 72;
    static final int FLOW_AND_STATE = 80;
    static final int T0 = 88;
    static final int LOGIC_START = 96;
    static final int LAST_MARK = 104;
    static final int LAST_NAME = 112;

    static final int FREE = 0;
    static final int CLAIMING = 1;
    static final int CLAIMED = 2;

    static final long IN_LOGIC = 1L << 32;
    static final int NAME_LENGTH = 16;
    static final int MAX_THREADS = 256;

    private ThreadDescriptor() {}
}
