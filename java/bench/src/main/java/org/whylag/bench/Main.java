package org.whylag.bench;

import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/** Runs all tracers and prints what each adds to the bare clock. Two CPUs have to be idle. */
public final class Main {
    public static void main(String[] args) throws Exception {
        var options =
                new OptionsBuilder()
                        .include(MarkBench.class.getName())
                        .forks(2)
                        .warmupIterations(3)
                        .warmupTime(TimeValue.milliseconds(500))
                        .measurementIterations(5)
                        .measurementTime(TimeValue.milliseconds(500))
                        .jvmArgs("-Xms512m", "-Xmx512m")
                        .addProfiler(GCProfiler.class);
        if (args.length > 0) {
            options.param("tracer", args);
        }
        print(new Runner(options.build()).run());
    }

    private static void print(Collection<RunResult> results) {
        Map<String, Double> medians = new TreeMap<>();
        for (RunResult result : results) {
            medians.put(tracer(result), perMark(result, 50));
        }
        Double clock = medians.get("clock");
        System.out.println();
        System.out.println(
                "A message: 8 looks at the clock, 3 by one thread and 5 by another; both threads' time added.");
        System.out.printf(
                "%-14s %14s %14s %10s %10s %14s %8s%n",
                "tracer", "ns/mark median", "without clock", "p10", "p90", "bytes/message", "turns");
        for (RunResult result : results) {
            String tracer = tracer(result);
            boolean hasClock = clock != null && !tracer.equals("clock") && !tracer.equals("off");
            System.out.printf(
                    "%-14s %14.1f %14s %10.1f %10.1f %14.1f %8d%n",
                    tracer,
                    medians.get(tracer),
                    hasClock ? "%.1f".formatted(medians.get(tracer) - clock) : "-",
                    perMark(result, 10),
                    perMark(result, 90),
                    result.getSecondaryResults().get("gc.alloc.rate.norm").getScore() / Pair.SLOTS,
                    result.getPrimaryResult().getStatistics().getN());
        }
        System.out.println(
                "A turn is " + Pair.SLOTS + " messages. off: whylag turned off, with one look at the clock per message.");
    }

    private static String tracer(RunResult result) {
        return result.getParams().getParam("tracer");
    }

    private static double perMark(RunResult result, int percentile) {
        return result.getPrimaryResult().getStatistics().getPercentile(percentile)
                / (Pair.SLOTS * Shape.MARKS);
    }

    private Main() {}
}
