package org.whylag.trace;

/**
 * A name, 64 bytes.
 *
 * <pre>
 *   0 id = index + 1 (4), written last    4 length of the text (2)    8 UTF-8, up to 56 bytes
 * </pre>
 */
final class NameDescriptor {
    static final int LENGTH = 64;

    static final int ID = 0;
    static final int TEXT_LENGTH = 4;
    static final int TEXT = 8;

    static final int MAX_TEXT = 56;

    private NameDescriptor() {}
}
