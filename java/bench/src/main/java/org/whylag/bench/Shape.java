package org.whylag.bench;

/**
 * A message as an engine handles it, over two threads, with eight looks at the clock: receipt and two
 * infrastructure points on the first thread; logic start, three publishes and the end on the second.
 */
interface Shape {
    int MARKS = 8;
    int SLOTS = 256;

    /** The first thread's part, of the message in this slot. */
    void receive(int slot, long id);

    /** The second thread's part. */
    void handle(int slot);
}
