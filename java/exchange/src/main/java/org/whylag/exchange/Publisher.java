package org.whylag.exchange;

import com.lmax.disruptor.EventHandler;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.DatagramChannel;

/** Sends what the logic published; each publisher has a ring and a thread of its own. */
final class Publisher implements EventHandler<Outbound>, AutoCloseable {
    private final DatagramChannel channel;
    private final Garbage garbage;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(Wire.LENGTH);

    /** {@code garbage}: null for a publisher without the fault. */
    Publisher(Garbage garbage) throws IOException {
        channel = DatagramChannel.open();
        this.garbage = garbage;
    }

    @Override
    public void onEvent(Outbound out, long sequence, boolean endOfBatch) throws IOException {
        if (garbage != null) {
            garbage.make();
        }
        buffer.clear();
        buffer.putLong(out.id).putLong(out.intended).putInt(out.kind).putInt(out.quantity).flip();
        channel.send(buffer, out.to);
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
