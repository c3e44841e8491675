package org.whylag.bench;

import org.whylag.trace.Flow;
import org.whylag.trace.Logic;
import org.whylag.trace.Trace;
import org.whylag.trace.Tracer;

/** This tracer: every message in a ring and in histograms, slow ones whole. */
final class WhylagShape implements Shape, AutoCloseable {
    private final Tracer tracer;
    private final Flow order;
    private final int fill;
    private final int trade;
    private final int report;
    private final Trace[] slots = new Trace[SLOTS];
    private Logic logic;

    WhylagShape(Tracer tracer) {
        this.tracer = tracer;
        // A turn of 256 messages takes longer than the usual threshold of an order.
        order = tracer.flow("order").infra("journalled", "replicated").thresholdNanos(1_000_000_000).build();
        fill = order.publish("fill");
        trade = order.publish("trade");
        report = order.publish("report");
        for (int slot = 0; slot < slots.length; slot++) {
            slots[slot] = new Trace();
        }
    }

    @Override
    public void receive(int slot, long id) {
        Trace trace = slots[slot];
        trace.begin(order, id, System.nanoTime());
        trace.mark(0);
        trace.mark(1);
    }

    @Override
    public void handle(int slot) {
        if (logic == null) {
            logic = tracer.logic();
        }
        Trace trace = slots[slot];
        logic.start(trace, slot);
        logic.published(trace, fill);
        logic.published(trace, trade);
        logic.published(trace, report);
        logic.end(trace);
    }

    @Override
    public void close() {
        tracer.close();
    }
}
