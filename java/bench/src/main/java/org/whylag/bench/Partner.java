package org.whylag.bench;

import java.util.concurrent.locks.LockSupport;

/** Another thread that does one thing whenever it is asked to. Waiting allocates nothing. */
final class Partner implements AutoCloseable {
    private final Thread thread;
    private final Runnable act;
    private volatile Thread asking;
    private volatile boolean over;

    Partner(Runnable act) {
        this.act = act;
        thread = new Thread(this::serve, "partner");
        thread.setDaemon(true);
        thread.start();
    }

    /** Returns when it is done. */
    void act() {
        asking = Thread.currentThread();
        LockSupport.unpark(thread);
        while (asking != null) {
            LockSupport.park(this);
        }
    }

    private void serve() {
        while (!over) {
            Thread asked = asking;
            if (asked == null) {
                LockSupport.park(this);
                continue;
            }
            act.run();
            asking = null;
            LockSupport.unpark(asked);
        }
    }

    @Override
    public void close() throws InterruptedException {
        over = true;
        LockSupport.unpark(thread);
        thread.join();
    }
}
