package org.whylag.exchange;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.DatagramChannel;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/**
 * Sends orders at even distances and measures from outside: from the time at which an order was to be
 * sent, whether or not the one before it was late, to its acknowledgement.
 */
final class Load {
    private static final int MIDDLE = 10_000;
    private static final int SPREAD = 5;
    private static final int MOST_LOTS = 10;
    private static final int SOCKET_BUFFER = 1 << 20;
    private static final long GRACE_MILLIS = 1_000;
    private static final double[] PERCENTILES = {50, 90, 99, 99.9};

    private final DatagramChannel channel;
    private final long[] latencies;
    private final long[] replies = new long[Wire.TRADE_REPORT + 1];

    private Load(DatagramChannel channel, int orders) {
        this.channel = channel;
        this.latencies = new long[orders];
    }

    /** Arguments: the engine's port, seconds, orders per second. */
    public static void main(String[] arguments) throws Exception {
        int rate = Integer.parseInt(arguments[2]);
        int orders = Integer.parseInt(arguments[1]) * rate;
        try (DatagramChannel channel = DatagramChannel.open()) {
            channel.setOption(StandardSocketOptions.SO_RCVBUF, SOCKET_BUFFER);
            channel.connect(
                    new InetSocketAddress(
                            InetAddress.getLoopbackAddress(), Integer.parseInt(arguments[0])));
            Load load = new Load(channel, orders);
            load.run(rate);
            load.print(rate);
        }
    }

    private void run(int rate) throws Exception {
        // Replies come from the publishers' sockets, so the receiving one cannot be connected.
        InetSocketAddress engine = (InetSocketAddress) channel.getRemoteAddress();
        channel.disconnect();
        Thread receiver = new Thread(this::receive, "replies");
        receiver.start();
        send(engine, 1_000_000_000L / rate);
        Thread.sleep(GRACE_MILLIS);
        channel.close();
        receiver.join();
    }

    private void send(InetSocketAddress engine, long interval) throws IOException {
        ByteBuffer order = ByteBuffer.allocateDirect(Wire.LENGTH);
        // The same orders in each run.
        Random random = new Random(4);
        long start = System.nanoTime() + interval;
        for (int id = 0; id < latencies.length; id++) {
            long intended = start + id * interval;
            for (long wait; (wait = intended - System.nanoTime()) > 0; ) {
                LockSupport.parkNanos(wait);
            }
            int price = MIDDLE + random.nextInt(2 * SPREAD + 1) - SPREAD;
            int quantity = 1 + random.nextInt(MOST_LOTS);
            order.clear();
            order.putLong(id).putLong(intended).putInt(price);
            order.putInt(random.nextBoolean() ? quantity : -quantity).flip();
            channel.send(order, engine);
        }
    }

    private void receive() {
        ByteBuffer reply = ByteBuffer.allocateDirect(Wire.LENGTH);
        try {
            while (true) {
                reply.clear();
                channel.receive(reply);
                long now = System.nanoTime();
                int kind = reply.getInt(16);
                replies[kind]++;
                if (kind == Wire.ACK) {
                    latencies[(int) reply.getLong(0)] = now - reply.getLong(8);
                }
            }
        } catch (AsynchronousCloseException e) {
            // All replies that were going to come have come.
        } catch (IOException e) {
            throw new IllegalStateException("replies: " + e, e);
        }
    }

    private void print(int rate) {
        long[] acknowledged = Arrays.stream(latencies).filter(each -> each > 0).sorted().toArray();
        System.out.printf(
                "load: %,d orders at %,d/s, %,d acknowledged, %,d lost; %,d fills, %,d trade reports%n",
                latencies.length,
                rate,
                acknowledged.length,
                latencies.length - acknowledged.length,
                replies[Wire.FILL],
                replies[Wire.TRADE_REPORT]);
        if (acknowledged.length == 0) {
            return;
        }
        StringBuilder line = new StringBuilder("seen from outside, us from the intended sending:");
        for (double percentile : PERCENTILES) {
            int index = (int) Math.ceil(percentile / 100 * acknowledged.length) - 1;
            line.append(
                    " p%s %,d".formatted(
                            percentile == (int) percentile ? "" + (int) percentile : "" + percentile,
                            acknowledged[index] / 1000));
        }
        line.append(" max %,d".formatted(acknowledged[acknowledged.length - 1] / 1000));
        System.out.println(line);
    }
}
