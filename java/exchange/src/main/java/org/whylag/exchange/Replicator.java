package org.whylag.exchange;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** Sends orders to the replica, and waits for its answer to each batch. */
final class Replicator implements EventHandler<OrderEvent>, AutoCloseable {
    private final SocketChannel replica;
    private final RingBuffer<OrderEvent> ring;
    private final ByteBuffer batch;
    private final ByteBuffer answer = ByteBuffer.allocateDirect(Long.BYTES);
    private long first = -1;

    Replicator(int port, RingBuffer<OrderEvent> ring) throws IOException {
        replica =
                SocketChannel.open(
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        replica.setOption(StandardSocketOptions.TCP_NODELAY, true);
        this.ring = ring;
        batch = ByteBuffer.allocateDirect(Integer.BYTES + ring.getBufferSize() * Wire.LENGTH);
        batch.position(Integer.BYTES);
    }

    @Override
    public void onEvent(OrderEvent event, long sequence, boolean endOfBatch) throws IOException {
        if (first < 0) {
            first = sequence;
        }
        Batches.append(batch, event);
        if (!endOfBatch) {
            return;
        }
        batch.putInt(0, batch.position() - Integer.BYTES);
        batch.flip();
        while (batch.hasRemaining()) {
            replica.write(batch);
        }
        batch.clear().position(Integer.BYTES);
        answer.clear();
        while (answer.hasRemaining()) {
            if (replica.read(answer) < 0) {
                throw new EOFException("the replica is gone");
            }
        }
        Batches.mark(ring, first, sequence, Engine.REPLICATED);
        first = -1;
    }

    @Override
    public void close() throws IOException {
        replica.close();
    }
}
