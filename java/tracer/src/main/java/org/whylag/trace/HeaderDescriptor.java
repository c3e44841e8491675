package org.whylag.trace;

import java.nio.charset.StandardCharsets;

/**
 * The first 4,096 bytes of the file.
 *
 * <pre>
 *    0 magic, 8 bytes, written last      88 created, ns since 1970
 *    8 major (2), minor (2)              96 created, CLOCK_MONOTONIC
 *   12 byte order (4)                   104 clock (4), number of sections (4)
 *   16 length of the file               112 table of sections, 16 of 32 bytes
 *   24 pid (4), language (4)            640 dropped: threads
 *   32 START, clock ticks since boot    648 dropped: flows, points, names, blocks
 *   40 inode of the pid namespace       656 number of anchors (TSC only: 0 here)
 *   48 boot id, 36 bytes               1024 anchors, then reserved
 *   84 state (4)
 * </pre>
 */
final class HeaderDescriptor {
    static final int LENGTH = 4096;

    static final int MAGIC = 0;
    static final int MAJOR = 8;
    static final int MINOR = 10;
    static final int BYTE_ORDER = 12;
    static final int FILE_LENGTH = 16;
    static final int PID = 24;
    static final int LANGUAGE = 28;
    static final int START = 32;
    static final int PID_NAMESPACE = 40;
    static final int BOOT_ID = 48;
    static final int STATE = 84;
    static final int CREATED_UNIX = 88;
    static final int CREATED_MONOTONIC = 96;
    static final int CLOCK = 104;
    static final int SECTIONS = 108;
    static final int TABLE = 112;
    static final int DROPPED_THREADS = 640;
    static final int DROPPED_NAMES = 648;

    static final byte[] MAGIC_BYTES = "WHYLAGT\n".getBytes(StandardCharsets.US_ASCII);
    static final int MAJOR_VERSION = 1;
    static final int MINOR_VERSION = 0;
    static final int BYTE_ORDER_WORD = 0x01020304;
    static final int LANGUAGE_JAVA = 3;
    static final int STATE_RUNNING = 1;
    static final int STATE_CLOSED = 2;
    static final int CLOCK_IS_MONOTONIC = 1;

    private HeaderDescriptor() {}
}
