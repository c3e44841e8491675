package org.whylag.exchange;

import com.lmax.disruptor.AlertException;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.WaitStrategy;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * The fault --chatty-clock: polls, and before each pause looks at the clock for a time-out that
 * never comes. Harmless as long as a look is cheap.
 */
final class ChattyClockWaitStrategy implements WaitStrategy {
    private static final int POLLS = 16;
    private static final long PAUSE_NANOS = 20_000;
    private static final long TIME_OUT_NANOS = 3_600_000_000_000L;

    private final LongAdder clockReads = new LongAdder();

    @Override
    public long waitFor(long sequence, Sequence cursor, Sequence dependent, SequenceBarrier barrier)
            throws AlertException {
        long start = System.nanoTime();
        long available;
        int polls = 0;
        while ((available = dependent.get()) < sequence) {
            barrier.checkAlert();
            polls++;
            if (System.nanoTime() - start > TIME_OUT_NANOS) {
                throw new IllegalStateException("no message for an hour");
            }
            if (polls % POLLS == 0) {
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
        clockReads.add(polls + 1);
        return available;
    }

    @Override
    public void signalAllWhenBlocking() {}

    long clockReads() {
        return clockReads.sum();
    }
}
