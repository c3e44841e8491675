package org.whylag.exchange;

/**
 * Messages between the load and the engine, big-endian.
 *
 * <pre>
 *   order   0 id (8)    8 intended time of sending, ns (8)    16 price (4)    20 quantity, < 0: sell (4)
 *   reply   0 id (8)    8 the same time                       16 kind (4)     20 quantity (4)
 * </pre>
 */
final class Wire {
    static final int LENGTH = 24;

    static final int ACK = 1;
    static final int FILL = 2;
    static final int TRADE_REPORT = 3;

    private Wire() {}
}
