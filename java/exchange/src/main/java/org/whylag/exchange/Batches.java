package org.whylag.exchange;

import com.lmax.disruptor.RingBuffer;
import java.nio.ByteBuffer;

/** What journal and replicator both do with a batch. */
final class Batches {
    static void append(ByteBuffer batch, OrderEvent event) {
        batch.putLong(event.id).putLong(event.intended).putInt(event.price).putInt(event.quantity);
    }

    /** All orders of a batch pass the point together, when the batch is safe. */
    static void mark(RingBuffer<OrderEvent> ring, long first, long last, int point) {
        for (long sequence = first; sequence <= last; sequence++) {
            ring.get(sequence).trace.mark(point);
        }
    }

    private Batches() {}
}
