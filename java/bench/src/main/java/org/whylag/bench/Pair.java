package org.whylag.bench;

/**
 * Two threads that take turns: one does its part of {@value #SLOTS} messages, then the other. The
 * times of both add up, the slots really move from CPU to CPU, and what handing over costs is spread
 * over all messages of a turn.
 */
final class Pair implements AutoCloseable {
    static final int SLOTS = 256;
    private static final int PATIENCE = 10_000;

    private final Shape shape;
    private final Thread second;
    private volatile long received;
    private volatile long handled;
    private volatile boolean over;
    private long id;

    Pair(Shape shape) {
        this.shape = shape;
        second = new Thread(this::handleAll, "second");
        second.setDaemon(true);
        second.start();
    }

    void turn() {
        for (int slot = 0; slot < SLOTS; slot++) {
            shape.receive(slot, id++);
        }
        long turn = received + 1;
        received = turn;
        for (int spins = 0; handled != turn; spins++) {
            pause(spins);
        }
    }

    /** The partner may need this CPU. */
    private static void pause(int spins) {
        if (spins < PATIENCE) {
            Thread.onSpinWait();
        } else {
            Thread.yield();
        }
    }

    private void handleAll() {
        for (long turn = 1; ; turn++) {
            for (int spins = 0; received != turn; spins++) {
                if (over) {
                    return;
                }
                pause(spins);
            }
            for (int slot = 0; slot < SLOTS; slot++) {
                shape.handle(slot);
            }
            handled = turn;
        }
    }

    @Override
    public void close() {
        over = true;
        try {
            second.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
