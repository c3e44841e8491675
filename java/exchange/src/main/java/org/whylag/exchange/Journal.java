package org.whylag.exchange;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Writes orders to disk, with one fsync for each batch. */
final class Journal implements EventHandler<OrderEvent>, AutoCloseable {
    private final FileChannel file;
    private final RingBuffer<OrderEvent> ring;
    private final ByteBuffer batch;
    private long first = -1;

    Journal(Path path, RingBuffer<OrderEvent> ring) throws IOException {
        file = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        this.ring = ring;
        batch = ByteBuffer.allocateDirect(ring.getBufferSize() * Wire.LENGTH);
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
        batch.flip();
        while (batch.hasRemaining()) {
            file.write(batch);
        }
        batch.clear();
        file.force(false);
        Batches.mark(ring, first, sequence, Engine.JOURNALLED);
        first = -1;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
