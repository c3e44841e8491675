package org.whylag.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.whylag.trace.Tracer;

/**
 * One thread's part of {@value Shape#SLOTS} messages, timed while the other thread waits; between two
 * parts the other thread does its own. So the slots move from thread to thread as they do in a ring,
 * and no time contains a wait for the other thread. The parts of both threads are added later.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class MarkBench {
    @Param({"clock", "whylag", "off", "jfr-marks", "jfr-message", "otel-span", "hdr-recorder"})
    public String tracer;

    @Param({"receive", "handle"})
    public String part;

    private Shape shape;
    private Partner partner;
    private boolean receives;
    private long id;

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
        receives = part.equals("receive");
        partner = new Partner(receives ? this::handleAll : this::receiveAll);
        if (receives) {
            receiveAll();
        }
    }

    @Setup(Level.Invocation)
    public void otherPart() {
        partner.act();
    }

    @Benchmark
    public void ownPart() {
        if (receives) {
            receiveAll();
        } else {
            handleAll();
        }
    }

    private void receiveAll() {
        for (int slot = 0; slot < Shape.SLOTS; slot++) {
            shape.receive(slot, id++);
        }
    }

    private void handleAll() {
        for (int slot = 0; slot < Shape.SLOTS; slot++) {
            shape.handle(slot);
        }
    }

    @TearDown
    public void stop() throws Exception {
        partner.close();
        if (shape instanceof AutoCloseable open) {
            open.close();
        }
    }
}
