package org.whylag.trace;

import java.lang.invoke.VarHandle;
import java.nio.LongBuffer;

/**
 * A part of the file that one thread writes, as aligned words of 8 bytes, which the machine loads
 * and stores whole. This is the hot path: a LongBuffer that is known to lie outside the heap lets the
 * compiler check and load less than a VarHandle's view of a ByteBuffer, whose opaque stores cost
 * half as much again per message.
 *
 * <p>{@code base} counts words, {@code field} is an offset in bytes from a descriptor.
 */
final class Words {
    private final LongBuffer words;

    Words(LongBuffer words) {
        this.words = words;
    }

    long get(int base, int field) {
        return words.get(base + (field >> 3));
    }

    void put(int base, int field, long value) {
        words.put(base + (field >> 3), value);
    }

    /** For the only writer. */
    void add(int base, int field, long value) {
        int index = base + (field >> 3);
        words.put(index, words.get(index) + value);
    }

    /** Whoever sees this sees all that was stored before. */
    void putRelease(int base, int field, long value) {
        VarHandle.releaseFence();
        words.put(base + (field >> 3), value);
    }
}
