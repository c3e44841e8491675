package org.whylag.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.whylag.trace.Flow;
import org.whylag.trace.Trace;
import org.whylag.trace.Tracer;

/** One mark, again and again by one thread: its mean cost, and how long a single one can take. */
@State(Scope.Thread)
@BenchmarkMode({Mode.AverageTime, Mode.SampleTime})
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class OneMarkBench {
    @Param({"nothing", "clock", "off", "whylag"})
    public String tracer;

    private final Trace trace = new Trace();
    private Tracer open;
    private Runnable mark;
    /** So that the read is not optimized away. */
    long time;

    @Setup
    public void begin() {
        open = tracer.equals("whylag") ? Tracer.open() : Tracer.off();
        Flow order = open.flow("order").infra("journalled").build();
        trace.begin(order, 1, System.nanoTime());
        mark =
                switch (tracer) {
                    case "nothing" -> () -> {};
                    case "clock" -> this::readClock;
                    default -> () -> trace.mark(0);
                };
    }

    private void readClock() {
        time = System.nanoTime();
    }

    @Benchmark
    public void mark() {
        mark.run();
    }

    @TearDown
    public void close() {
        open.close();
    }
}
