package org.whylag.exchange;

import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.DatagramChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.stream.Stream;
import org.whylag.trace.Flow;
import org.whylag.trace.Tracer;

/** The traced process. Says its port on standard output, and runs until standard input ends. */
final class Engine {
    static final int JOURNALLED = 0;
    static final int REPLICATED = 1;

    private static final int INPUT_SLOTS = 4096;
    private static final int OUTPUT_SLOTS = 1024;
    private static final int SOCKET_BUFFER = 1 << 20;

    /** Arguments: the replica's port, then the options of {@link Exchange}. */
    public static void main(String[] arguments) throws Exception {
        Options options = Options.of(Arrays.asList(arguments).subList(1, arguments.length));
        Path journal = Files.createTempFile(options.folder, "exchange", ".journal");
        Files.delete(journal);
        try (Tracer tracer = Tracer.open()) {
            run(Integer.parseInt(arguments[0]), options, tracer, journal);
        } finally {
            Files.deleteIfExists(journal);
        }
    }

    private static void run(int replicaPort, Options options, Tracer tracer, Path path)
            throws Exception {
        Flow order =
                tracer.flow("order")
                        .infra("journalled", "replicated")
                        .thresholdNanos(options.thresholdMicros * 1_000L)
                        .build();
        WaitStrategy[] waits = Stream.generate(options::waitStrategy).limit(3).toArray(WaitStrategy[]::new);
        Disruptor<Outbound> reports = output("reports", waits[0]);
        Disruptor<Outbound> trades = output("trades", waits[1]);
        Disruptor<OrderEvent> input =
                new Disruptor<>(
                        OrderEvent::new,
                        INPUT_SLOTS,
                        named("journal", "replicate", "matching"),
                        ProducerType.SINGLE,
                        waits[2]);
        Matching matching =
                new Matching(tracer, order, reports.getRingBuffer(), trades.getRingBuffer());
        try (Journal journal = new Journal(path, input.getRingBuffer());
                Replicator replicator = new Replicator(replicaPort, input.getRingBuffer());
                Publisher reporter = new Publisher(null);
                Publisher trader = new Publisher(options.garbage ? new Garbage() : null);
                DatagramChannel channel = listen()) {
            input.handleEventsWith(journal, replicator).then(matching);
            reports.handleEventsWith(reporter);
            trades.handleEventsWith(trader);
            reports.start();
            trades.start();
            input.start();
            Thread receiver =
                    new Thread(new Receiver(channel, input.getRingBuffer(), order), "receiver");
            receiver.start();
            System.out.println(((InetSocketAddress) channel.getLocalAddress()).getPort());

            System.in.transferTo(OutputStream.nullOutputStream());
            receiver.interrupt();
            receiver.join();
            input.shutdown();
            reports.shutdown();
            trades.shutdown();
        }
        System.out.println(matching + clockReads(waits));
    }

    private static String clockReads(WaitStrategy[] waits) {
        long reads =
                Arrays.stream(waits)
                        .filter(ChattyClockWaitStrategy.class::isInstance)
                        .mapToLong(each -> ((ChattyClockWaitStrategy) each).clockReads())
                        .sum();
        return reads == 0 ? "" : ", %,d clock reads while waiting".formatted(reads);
    }

    private static DatagramChannel listen() throws IOException {
        return DatagramChannel.open()
                .setOption(StandardSocketOptions.SO_RCVBUF, SOCKET_BUFFER)
                .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    }

    private static Disruptor<Outbound> output(String name, WaitStrategy wait) {
        return new Disruptor<>(
                Outbound::new, OUTPUT_SLOTS, named(name), ProducerType.SINGLE, wait);
    }

    /** Threads are made in the order in which the handlers were added. */
    private static ThreadFactory named(String... names) {
        var next = List.of(names).iterator();
        return work -> new Thread(work, next.next());
    }

    private Engine() {}
}
