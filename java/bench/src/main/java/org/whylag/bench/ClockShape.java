package org.whylag.bench;

/** The clock alone, kept in the slot: what nobody can be cheaper than. */
final class ClockShape implements Shape {
    private final long[][] slots = new long[SLOTS][16];

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
        times[3] = System.nanoTime();
        times[4] = System.nanoTime();
        times[5] = System.nanoTime();
        times[6] = System.nanoTime();
        times[7] = System.nanoTime();
    }
}
