package org.whylag.bench;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.util.Statistics;
import org.whylag.trace.Trace;
import org.whylag.trace.Tracer;

/** Runs all tracers and prints what each adds to the bare clock. */
public final class Main {
    /** Arguments: names of tracers, for only some of them. */
    public static void main(String[] arguments) throws Exception {
        var turns = options(MarkBench.class).addProfiler(GCProfiler.class);
        if (arguments.length > 0) {
            turns.param("tracer", arguments);
        }
        Collection<RunResult> messages = new Runner(turns.build()).run();
        Collection<RunResult> marks =
                arguments.length > 0 ? List.of() : new Runner(options(OneMarkBench.class).build()).run();
        print(messages);
        if (!marks.isEmpty()) {
            printMarks(marks);
            printRetained();
        }
    }

    private static ChainedOptionsBuilder options(Class<?> bench) {
        return new OptionsBuilder()
                .include(bench.getName())
                .forks(1)
                .warmupIterations(3)
                .warmupTime(TimeValue.milliseconds(300))
                .measurementIterations(5)
                .measurementTime(TimeValue.milliseconds(300))
                .jvmArgs("-Xms512m", "-Xmx512m");
    }

    private static void print(Collection<RunResult> results) {
        Map<String, Message> messages = new LinkedHashMap<>();
        for (RunResult result : results) {
            messages.computeIfAbsent(tracer(result), each -> new Message()).add(result);
        }
        Message clock = messages.get("clock");
        System.out.println();
        System.out.println(
                "A message: 8 looks at the clock, 3 by one thread and 5 by another; medians of both parts added.");
        System.out.printf(
                "%-14s %12s %14s %22s %14s %8s%n",
                "tracer", "ns per mark", "without clock", "p10 .. p90", "bytes/message", "n");
        messages.forEach(
                (tracer, message) -> {
                    boolean hasClock =
                            clock != null && !tracer.equals("clock") && !tracer.equals("off");
                    System.out.printf(
                            "%-14s %12.1f %14s %22s %14.1f %8d%n",
                            tracer,
                            message.median,
                            hasClock ? "%.1f".formatted(message.median - clock.median) : "-",
                            "%.1f .. %.1f".formatted(message.low, message.high),
                            message.bytes,
                            message.n);
                });
        System.out.println(
                "n: times of "
                        + Shape.SLOTS
                        + " messages each. off: whylag turned off, with one look at the clock per message.");
    }

    /** Both parts of a message, in ns per mark. */
    private static final class Message {
        double median;
        double low;
        double high;
        double bytes;
        long n;

        void add(RunResult part) {
            median += perMark(part, 50);
            low += perMark(part, 10);
            high += perMark(part, 90);
            // Both threads are counted in either part's run.
            double allocated = part.getSecondaryResults().get("gc.alloc.rate.norm").getScore();
            bytes = Math.max(bytes, allocated / Shape.SLOTS);
            n += part.getPrimaryResult().getStatistics().getN();
        }
    }

    private static String tracer(RunResult result) {
        return result.getParams().getParam("tracer");
    }

    private static double perMark(RunResult result, int percentile) {
        return result.getPrimaryResult().getStatistics().getPercentile(percentile)
                / (Shape.SLOTS * Shape.MARKS);
    }

    private static void printMarks(Collection<RunResult> results) {
        System.out.println();
        System.out.println("One mark of an infrastructure point, by one thread, ns:");
        System.out.printf(
                "%-14s %10s %10s %10s %10s%n", "tracer", "mean", "p50 *", "p99 *", "p99.99 *");
        Map<String, Double> means = new TreeMap<>();
        for (RunResult result : results) {
            if (result.getParams().getMode() == Mode.AverageTime) {
                means.put(tracer(result), result.getPrimaryResult().getScore());
                continue;
            }
            Statistics samples = result.getPrimaryResult().getStatistics();
            System.out.printf(
                    "%-14s %10.1f %10.0f %10.0f %10.0f%n",
                    tracer(result),
                    means.get(tracer(result)),
                    samples.getPercentile(50),
                    samples.getPercentile(99),
                    samples.getPercentile(99.99));
        }
        System.out.println("* timed one by one, so with what the timing itself takes: see 'nothing'");
    }

    private static void printRetained() throws IOException {
        var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        Trace[] slots = new Trace[1000];
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int slot = 0; slot < slots.length; slot++) {
            slots[slot] = new Trace();
        }
        long each = (threads.getCurrentThreadAllocatedBytes() - before) / slots.length;
        try (Tracer tracer = Tracer.open()) {
            System.out.printf(
                    "%nRetained: %,d KiB of shared memory, %d bytes for each slot of a ring.%n",
                    Files.size(tracer.path()) / 1024, each);
        }
    }

    private Main() {}
}
