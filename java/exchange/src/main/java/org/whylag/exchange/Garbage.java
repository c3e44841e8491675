package org.whylag.exchange;

/**
 * The fault --garbage: a publisher that builds a big text for each message and keeps the last ones,
 * so that every collection has something to copy while all threads stand still.
 */
final class Garbage {
    private static final int KEPT = 512;
    private static final int TEXT = 128;
    private static final int TEXTS = 512;

    private final Object[] kept = new Object[KEPT];
    private int next;

    void make() {
        char[][] texts = new char[TEXTS][];
        for (int i = 0; i < TEXTS; i++) {
            texts[i] = new char[TEXT];
        }
        kept[next] = texts;
        next = (next + 1) % KEPT;
    }
}
