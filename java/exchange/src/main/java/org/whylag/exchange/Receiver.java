package org.whylag.exchange;

import com.lmax.disruptor.RingBuffer;
import java.io.IOException;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.DatagramChannel;
import org.whylag.trace.Flow;

/** Takes orders from the network into the ring; here a message's time begins. */
final class Receiver implements Runnable {
    private final DatagramChannel channel;
    private final RingBuffer<OrderEvent> ring;
    private final Flow order;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(2048);

    Receiver(DatagramChannel channel, RingBuffer<OrderEvent> ring, Flow order) {
        this.channel = channel;
        this.ring = ring;
        this.order = order;
    }

    @Override
    public void run() {
        try {
            while (true) {
                buffer.clear();
                SocketAddress from = channel.receive(buffer);
                long received = System.nanoTime();
                if (buffer.position() == Wire.LENGTH) {
                    publish(from, received);
                }
            }
        } catch (AsynchronousCloseException e) {
            // The engine stops.
        } catch (IOException e) {
            throw new IllegalStateException("receiver: " + e, e);
        }
    }

    private void publish(SocketAddress from, long received) {
        long sequence = ring.next();
        try {
            OrderEvent event = ring.get(sequence);
            event.id = buffer.getLong(0);
            event.intended = buffer.getLong(8);
            event.price = buffer.getInt(16);
            event.quantity = buffer.getInt(20);
            event.from = from;
            event.trace.begin(order, event.id, received);
        } finally {
            ring.publish(sequence);
        }
    }
}
