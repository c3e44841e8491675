package org.whylag.exchange;

import java.net.SocketAddress;

/** A slot of a publisher's ring. */
final class Outbound {
    long id;
    long intended;
    int kind;
    int quantity;
    SocketAddress to;
}
