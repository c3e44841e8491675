package org.whylag.trace;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.MappedByteBuffer;

/**
 * The mapped file, for set-up and for what several threads or processes write. The name of a method
 * states its memory order: a plain put is ordered only by the release that follows it. What a single
 * thread writes, and often, it writes through {@link Words}.
 */
final class Memory {
    private static final VarHandle LONG =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT =
            MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private final MappedByteBuffer buffer;
    private final LongBuffer longs;

    Memory(MappedByteBuffer buffer) {
        this.buffer = buffer;
        buffer.order(ByteOrder.LITTLE_ENDIAN);
        this.longs = buffer.asLongBuffer();
    }

    Words words(int at, int length) {
        return new Words(longs.slice(at >> 3, length >> 3));
    }

    void putLong(int at, long value) {
        buffer.putLong(at, value);
    }

    void putInt(int at, int value) {
        buffer.putInt(at, value);
    }

    /** For text, before the store that publishes it. */
    void putBytes(int at, byte[] bytes) {
        buffer.put(at, bytes);
    }

    /** What another process may write at any time. */
    long getLongOpaque(int at) {
        return (long) LONG.getOpaque(buffer, at);
    }

    void putLongRelease(int at, long value) {
        LONG.setRelease(buffer, at, value);
    }

    void putIntRelease(int at, int value) {
        INT.setRelease(buffer, at, value);
    }

    boolean compareAndSetInt(int at, int expected, int value) {
        return INT.compareAndSet(buffer, at, expected, value);
    }

    /** For the few counters that several threads write. */
    void addLong(int at, long value) {
        LONG.getAndAddRelease(buffer, at, value);
    }
}
