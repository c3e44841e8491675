package org.whylag.trace;

/**
 * A record of one message, 512 bytes. Pairs of 4-byte fields are stored as one 8-byte word.
 *
 * <pre>
 *    0 sequence: 0 while being written, else k + 1    48 queue depth (4), thread (4)
 *    8 message id                                     56 publishes (4)
 *   16 flow (4), flags (4): 1 slow                    64 longest gap between publishes
 *   24 t0                                             72 8 points: time (8), thread (4), 0 (4)
 *   32 logic start                                   200 16 publishes: time (8), name (4), 0 (4)
 *   40 end                                           504 sequence again: k + 1, written last
 * </pre>
 */
final class RecordDescriptor {
    static final int LENGTH = 512;

    static final int HEAD = 0;
    static final int MESSAGE_ID = 8;
    static final int FLOW_AND_FLAGS = 16;
    static final int T0 = 24;
    static final int LOGIC_START = 32;
    static final int END = 40;
    static final int DEPTH_AND_THREAD = 48;
    static final int PUBLISHES = 56;
    static final int LONGEST_GAP = 64;
    static final int CELLS = 72;
    static final int TAIL = 504;

    static final long SLOW = 1L << 32;
    /** A thread or a depth that is not known, in 4 bytes. */
    static final int UNKNOWN = 0xffff_ffff;

    private RecordDescriptor() {}
}
