package org.whylag.exchange;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import org.whylag.trace.Flow;
import org.whylag.trace.Logic;
import org.whylag.trace.Tracer;

/** The business logic, in one thread: matches orders and publishes what came of them. */
final class Matching implements EventHandler<OrderEvent>, OrderBook.Trades {
    private static final int PRICES = 1 << 16;

    private final Tracer tracer;
    private final RingBuffer<Outbound> reports;
    private final RingBuffer<Outbound> trades;
    private final int ack;
    private final int fill;
    private final int tradeReport;
    private final OrderBook book = new OrderBook(PRICES);
    private Logic logic;
    private OrderEvent current;
    private int depth;
    private long orders;
    private long traded;

    Matching(
            Tracer tracer, Flow order, RingBuffer<Outbound> reports, RingBuffer<Outbound> trades) {
        this.tracer = tracer;
        this.reports = reports;
        this.trades = trades;
        ack = order.publish("ack");
        fill = order.publish("fill");
        tradeReport = order.publish("trade-report");
    }

    @Override
    public void onStart() {
        logic = tracer.logic();
    }

    @Override
    public void onBatchStart(long batchSize, long queueDepth) {
        depth = (int) queueDepth;
    }

    @Override
    public void onEvent(OrderEvent event, long sequence, boolean endOfBatch) {
        depth--;
        logic.start(event.trace, depth);
        orders++;
        current = event;
        if (book.hasPrice(event.price) && event.quantity != 0) {
            publish(reports, event.id, Wire.ACK, Math.abs(event.quantity));
            logic.published(event.trace, ack);
            if (event.quantity > 0) {
                book.buy(event.id, event.price, event.quantity, this);
            } else {
                book.sell(event.id, event.price, -event.quantity, this);
            }
        }
        logic.end(event.trace);
    }

    @Override
    public void trade(long restingId, int price, int quantity) {
        traded++;
        publish(reports, current.id, Wire.FILL, quantity);
        logic.published(current.trace, fill);
        publish(trades, restingId, Wire.TRADE_REPORT, quantity);
        logic.published(current.trace, tradeReport);
    }

    /** Waits if the publisher does not keep up. */
    private void publish(RingBuffer<Outbound> ring, long id, int kind, int quantity) {
        long sequence = ring.next();
        try {
            Outbound out = ring.get(sequence);
            out.id = id;
            out.intended = current.intended;
            out.kind = kind;
            out.quantity = quantity;
            out.to = current.from;
        } finally {
            ring.publish(sequence);
        }
    }

    /** After the thread has ended. */
    @Override
    public String toString() {
        return "%d orders, %d trades".formatted(orders, traded);
    }
}
