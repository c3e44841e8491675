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
import org.whylag.trace.Tracer;

/**
 * Turns of a {@link Pair}, each timed by itself: their median is hardly moved by the turns in which
 * something else had one of the CPUs.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class MarkBench {
    @Param({"clock", "whylag", "off", "jfr-marks", "jfr-message", "otel-span", "hdr-recorder"})
    public String tracer;

    private Shape shape;
    private Pair pair;

    @Setup
    public void start() throws Exception {
        shape =
                switch (tracer) {
                    case "clock" -> new ClockShape();
                    case "whylag" -> new WhylagShape(Tracer.open());
                    case "off" -> new WhylagShape(Tracer.off());
                    case "jfr-marks" -> new JfrShape();
                    case "jfr-message" -> new JfrMessageShape();
                    case "otel-span" -> new SpanShape();
                    case "hdr-recorder" -> new RecorderShape();
                    default -> throw new IllegalArgumentException(tracer);
                };
        pair = new Pair(shape);
    }

    @Benchmark
    public void turn() {
        pair.turn();
    }

    @TearDown
    public void stop() throws Exception {
        pair.close();
        if (shape instanceof AutoCloseable open) {
            open.close();
        }
    }
}
