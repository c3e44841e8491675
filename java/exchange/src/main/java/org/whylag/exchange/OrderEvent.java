package org.whylag.exchange;

import java.net.SocketAddress;
import org.whylag.trace.Trace;

/** A slot of the input ring. The trace is in it, so it travels with the order. */
final class OrderEvent {
    final Trace trace = new Trace();
    long id;
    long intended;
    int price;
    int quantity;
    SocketAddress from;
}
