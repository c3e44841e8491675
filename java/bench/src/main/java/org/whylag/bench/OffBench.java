package org.whylag.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.whylag.trace.Flow;
import org.whylag.trace.Trace;
import org.whylag.trace.Tracer;

/** One mark while tracing is off. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class OffBench {
    private final Trace trace = new Trace();

    @Setup(Level.Trial)
    public void begin() {
        Flow order = Tracer.off().flow("order").infra("journalled").build();
        trace.begin(order, 1, System.nanoTime());
    }

    @Benchmark
    public void mark() {
        trace.mark(0);
    }

    /** What calling a method that does nothing costs here. */
    @Benchmark
    public void nothing() {}
}
