package org.whylag.trace;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;

/**
 * The mapped file. The name of a method tells its memory order: opaque stores are single and whole
 * but unordered (what C calls relaxed), release and acquire pair up with the reader and with the
 * other threads of the application.
 */
final class Memory {
    private static final VarHandle LONG =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT =
            MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private final MappedByteBuffer buffer;

    Memory(MappedByteBuffer buffer) {
        this.buffer = buffer;
    }

    long getLongOpaque(int at) {
        return (long) LONG.getOpaque(buffer, at);
    }

    void putLongOpaque(int at, long value) {
        LONG.setOpaque(buffer, at, value);
    }

    void putLongRelease(int at, long value) {
        LONG.setRelease(buffer, at, value);
    }

    /** For the few counters that several threads write. */
    void addLong(int at, long value) {
        LONG.getAndAddRelease(buffer, at, value);
    }

    void putIntOpaque(int at, int value) {
        INT.setOpaque(buffer, at, value);
    }

    void putIntRelease(int at, int value) {
        INT.setRelease(buffer, at, value);
    }

    boolean compareAndSetInt(int at, int expected, int value) {
        return INT.compareAndSet(buffer, at, expected, value);
    }

    /** For text, before the store that publishes it. */
    void putBytes(int at, byte[] bytes) {
        buffer.put(at, bytes);
    }
}
