package org.whylag.trace;

/**
 * An entry of the table of sections, 32 bytes.
 *
 * <pre>
 *   0 kind (4)    4 bytes per entry (4)    8 number of entries    16 offset    24 length
 * </pre>
 */
final class SectionDescriptor {
    static final int LENGTH = 32;

    static final int KIND = 0;
    static final int ENTRY_LENGTH = 4;
    static final int ENTRIES = 8;
    static final int OFFSET = 16;
    static final int BYTES = 24;

    static final int NAMES = 1;
    static final int FLOWS = 2;
    static final int THREADS = 3;
    static final int RECENT = 4;
    static final int SLOW = 5;
    static final int HISTOGRAMS = 6;

    private SectionDescriptor() {}
}
