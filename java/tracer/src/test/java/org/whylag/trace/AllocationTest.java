package org.whylag.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** After registration a message allocates nothing. */
class AllocationTest extends Fixture {
    private static final int MESSAGES = 200_000;

    @Test
    void noByteIsAllocated() {
        open();
        // Every message is slow, so that the slow ring is written too.
        Flow order = tracer.flow("order").infra("journalled").thresholdNanos(1_000).build();
        int fill = order.publish("fill");
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        run(order, fill, logic, trace);
        threads.getCurrentThreadAllocatedBytes();

        long before = threads.getCurrentThreadAllocatedBytes();
        run(order, fill, logic, trace);
        long after = threads.getCurrentThreadAllocatedBytes();

        assertEquals(0, after - before);
    }

    private static void run(Flow order, int fill, Logic logic, Trace trace) {
        for (int id = 0; id < MESSAGES; id++) {
            trace.begin(order, id, System.nanoTime() - 1_000);
            trace.mark(0);
            logic.start(trace);
            logic.published(trace, fill);
            logic.end(trace);
        }
    }
}
