package org.whylag.trace;

/**
 * A flow, 256 bytes. The counts have a cache line of their own: begin writes them on one CPU while
 * end reads the threshold on another.
 *
 * <pre>
 *    0 id = index + 1 (4), written last    48 names of publishes, 16 of 4 bytes
 *    4 name (4)                           112 threshold, ns; a reader may write it
 *    8 infrastructure points (4)          192 begun
 *   12 room for publishes (4)             200 abandoned
 *   16 names of points, 8 of 4 bytes      208 undeclared
 *                                         216 begun by the thread that began the first
 * </pre>
 */
final class FlowDescriptor {
    static final int LENGTH = 256;

    static final int ID = 0;
    static final int NAME = 4;
    static final int POINTS = 8;
    static final int PUBLISHES = 12;
    static final int POINT_NAMES = 16;
    static final int PUBLISH_NAMES = 48;
    static final int THRESHOLD = 112;
    static final int BEGUN = 192;
    static final int ABANDONED = 200;
    static final int UNDECLARED = 208;
    static final int BEGUN_BY_FIRST = 216;

    static final int MAX_FLOWS = 16;
    static final int MAX_POINTS = 8;
    static final int MAX_PUBLISHES = 16;

    private FlowDescriptor() {}
}
