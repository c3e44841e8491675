package org.whylag.bench;

import org.HdrHistogram.Recorder;

/** HdrHistogram's Recorder: distributions of the same eight metrics, but no message by itself. */
final class RecorderShape implements Shape {
    private final long[][] slots = new long[SLOTS][16];
    private final Recorder journalled = recorder();
    private final Recorder replicated = recorder();
    private final Recorder infrastructure = recorder();
    private final Recorder[] gaps = {recorder(), recorder(), recorder()};
    private final Recorder logic = recorder();
    private final Recorder total = recorder();

    /** Two digits: 128 buckets per power of two, the nearest to our 32. */
    private static Recorder recorder() {
        return new Recorder(1L << 37, 2);
    }

    @Override
    public void receive(int slot, long id) {
        long[] times = slots[slot];
        times[8] = id;
        times[0] = System.nanoTime();
        times[1] = System.nanoTime();
        times[2] = System.nanoTime();
    }

    @Override
    public void handle(int slot) {
        long[] times = slots[slot];
        long start = System.nanoTime();
        journalled.recordValue(times[1] - times[0]);
        replicated.recordValue(times[2] - times[0]);
        infrastructure.recordValue(start - times[0]);
        long last = start;
        for (Recorder gap : gaps) {
            long now = System.nanoTime();
            gap.recordValue(now - last);
            last = now;
        }
        long end = System.nanoTime();
        logic.recordValue(end - start);
        total.recordValue(end - times[0]);
    }
}
