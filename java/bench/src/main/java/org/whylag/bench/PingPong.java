package org.whylag.bench;

import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;
import com.lmax.disruptor.util.DaemonThreadFactory;
import java.util.ArrayList;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.whylag.trace.Flow;
import org.whylag.trace.Logic;
import org.whylag.trace.Trace;
import org.whylag.trace.Tracer;

/**
 * A message to another thread and back over a Disruptor, traced and not, in turns. Not traced is
 * measured twice a turn: how far these two lie apart is the noise.
 */
public final class PingPong {
    private static final int TURNS = 15;
    private static final int MESSAGES = 200_000;
    private static final double[] PERCENTILES = {10, 50, 90, 99, 99.9, 99.99};
    private static final int BAR = 30;

    private static final class Event {
        final Trace trace = new Trace();
    }

    /** One way there and back. */
    private static final class Game implements AutoCloseable {
        private final Flow flow;
        private final Disruptor<Event> disruptor =
                new Disruptor<>(
                        Event::new, 64, DaemonThreadFactory.INSTANCE, ProducerType.SINGLE, new BusySpinWaitStrategy());
        private volatile long returned = -1;

        Game(Tracer tracer) {
            flow = tracer.flow("ping").infra("sent").thresholdNanos(1_000_000_000).build();
            int pong = flow.publish("pong");
            var logic = new Logic[1];
            disruptor.handleEventsWith(
                    (event, sequence, endOfBatch) -> {
                        if (logic[0] == null) {
                            logic[0] = tracer.logic();
                        }
                        logic[0].start(event.trace, 0);
                        logic[0].published(event.trace, pong);
                        logic[0].end(event.trace);
                        returned = sequence;
                    });
            disruptor.start();
        }

        Histogram play(int messages) {
            var times = new Histogram(3);
            var ring = disruptor.getRingBuffer();
            for (int message = 0; message < messages; message++) {
                long begin = System.nanoTime();
                long sequence = ring.next();
                Trace trace = ring.get(sequence).trace;
                trace.begin(flow, sequence, begin);
                trace.mark(0);
                ring.publish(sequence);
                while (returned < sequence) {
                    Thread.onSpinWait();
                }
                times.recordValue(System.nanoTime() - begin);
            }
            return times;
        }

        @Override
        public void close() {
            disruptor.shutdown();
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<List<Histogram>> rounds = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        for (int turn = -2; turn < TURNS; turn++) {
            for (int kind = 0; kind < rounds.size(); kind++) {
                try (Tracer tracer = kind == 2 ? Tracer.open() : Tracer.off();
                        Game game = new Game(tracer)) {
                    game.play(MESSAGES / 10);
                    Histogram times = game.play(MESSAGES);
                    // The first turns are the compiler's.
                    if (turn >= 0) {
                        rounds.get(kind).add(times);
                    }
                }
            }
        }
        printPercentiles(rounds);
        printOverlaid(sum(rounds.get(0), rounds.get(1)), sum(rounds.get(2)));
    }

    private static void printPercentiles(List<List<Histogram>> rounds) {
        System.out.printf("ns there and back, medians of %d rounds of %,d messages%n", TURNS, MESSAGES);
        System.out.printf(
                "%-10s %10s %10s %24s %10s%n", "percentile", "off", "off again", "least .. most of both", "traced");
        for (double percentile : PERCENTILES) {
            long[] off = sorted(rounds.get(0), percentile);
            long[] again = sorted(rounds.get(1), percentile);
            long[] on = sorted(rounds.get(2), percentile);
            long least = Math.min(off[0], again[0]);
            long most = Math.max(off[TURNS - 1], again[TURNS - 1]);
            System.out.printf(
                    "%9s%% %,10d %,10d %24s %,10d%n",
                    percentile,
                    off[TURNS / 2],
                    again[TURNS / 2],
                    "%,d .. %,d".formatted(least, most),
                    on[TURNS / 2]);
        }
    }

    private static long[] sorted(List<Histogram> rounds, double percentile) {
        return rounds.stream().mapToLong(round -> round.getValueAtPercentile(percentile)).sorted().toArray();
    }

    @SafeVarargs
    private static Histogram sum(List<Histogram>... rounds) {
        var sum = new Histogram(3);
        for (List<Histogram> some : rounds) {
            some.forEach(sum::add);
        }
        return sum;
    }

    /** Shares of both in the same steps, eight to a factor of two where most are, on one axis. */
    private static void printOverlaid(Histogram off, Histogram on) {
        System.out.printf("%n%14s  %-9s %-9s  # off, o traced, @ both%n", "up to, ns", "off", "traced");
        double to = Math.max(1, Math.min(off.getMinValue(), on.getMinValue()));
        long most = Math.max(off.getMaxValue(), on.getMaxValue());
        long usual = Math.max(off.getValueAtPercentile(99), on.getValueAtPercentile(99));
        long from = 0;
        for (; from <= most; to *= to < usual ? Math.pow(2, 0.125) : 2) {
            double ofOff = share(off, from, (long) to);
            double ofOn = share(on, from, (long) to);
            from = (long) to + 1;
            if (ofOff > 0 || ofOn > 0) {
                System.out.printf("%,14d  %8.4f%% %8.4f%%  %s%n", (long) to, ofOff, ofOn, bar(ofOff, ofOn));
            }
        }
    }

    private static double share(Histogram times, long from, long to) {
        return 100.0 * times.getCountBetweenValues(from, to) / times.getTotalCount();
    }

    /** Logarithmic: from a millionth to all. */
    private static String bar(double off, double on) {
        var bar = new StringBuilder();
        for (int step = 1; step <= BAR; step++) {
            double least = 100 * Math.pow(10, 6.0 * (step - BAR) / BAR);
            bar.append(off >= least ? (on >= least ? '@' : '#') : on >= least ? 'o' : ' ');
        }
        return bar.toString().stripTrailing();
    }

    private PingPong() {}
}
