package org.whylag.trace;

import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;

/** A program of its own, for what a test cannot do in its own JVM. */
final class Child {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "open" -> open();
            case "endless" -> endless();
            case "exit" -> exit();
            case "virtual" -> onVirtualThread();
            case "golden" -> golden(Path.of(args[1]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void open() {
        try (Tracer tracer = Tracer.open()) {
            System.out.println(tracer.isOff() ? "off" : "opened " + tracer.path());
        } catch (TraceException e) {
            System.out.println("refused: " + e.getMessage());
        }
    }

    private static void endless() {
        Tracer tracer = Tracer.with().recent(4).open();
        Flow order = tracer.flow("order").build();
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        System.out.println(tracer.path());
        for (long id = 0; ; id++) {
            Fixture.message(logic, order, trace, id);
        }
    }

    private static void exit() {
        System.out.println(Tracer.open().path());
        System.exit(3);
    }

    /** By reflection: this compiles for 17. */
    private static void onVirtualThread() throws Exception {
        Tracer tracer = Tracer.open();
        Flow order = tracer.flow("order").infra("journalled").build();
        Trace trace = new Trace();
        trace.begin(order, 1, System.nanoTime());
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread thread =
                (Thread)
                        start.invoke(
                                null,
                                (Runnable)
                                        () -> {
                                            trace.mark(0);
                                            try {
                                                tracer.logic();
                                            } catch (TraceException e) {
                                                System.out.println("refused: " + e.getMessage());
                                            }
                                        });
        thread.join();
        tracer.logic().start(trace);
        tracer.logic().end(trace);
        TraceBytes file = new TraceBytes(tracer.path());
        System.out.println("dropped " + file.u64(640));
        System.out.println("thread " + file.record(4, 0, 0).pointThread(0));
        tracer.close();
    }

    /** The same messages as the golden files of the other writers: see crates/trace/tests/golden.rs. */
    private static void golden(Path target) throws Exception {
        Tracer tracer = Tracer.with().names(16).threads(2).recent(4).slow(2).histograms(1).open();
        Logic logic = tracer.logic();
        Flow order =
                tracer.flow("order")
                        .infra("journalled", "replicated")
                        .thresholdNanos(1_000_000_000)
                        .build();
        Flow quote = tracer.flow("quote").thresholdNanos(2_000_000_000).build();
        int fill = order.publish("fill");
        int report = order.publish("trade-report");
        int unnamed = -1;
        Trace trace = new Trace();
        for (int id = 1; id <= 5; id++) {
            trace.begin(order, id, System.nanoTime() - (id == 3 ? 1_500_000_000 : 0));
            trace.mark(0);
            if (id % 2 == 1) {
                trace.mark(1);
            }
            logic.start(trace, id * 10);
            logic.published(trace, fill);
            logic.published(trace, report);
            logic.published(trace, unnamed);
            logic.end(trace);
        }
        trace.begin(quote, 6, System.nanoTime());
        trace.begin(quote, 7, System.nanoTime());
        trace.mark(5);
        logic.start(trace);
        for (int i = 0; i < 20; i++) {
            logic.published(trace, fill);
        }
        logic.end(trace);
        trace.begin(order, 8, System.nanoTime());
        logic.start(trace, 0);
        logic.published(trace, report);
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(target))) {
            Files.copy(tracer.path(), out);
        }
        tracer.close();
    }

    private Child() {}
}
