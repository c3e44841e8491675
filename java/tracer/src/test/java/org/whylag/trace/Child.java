package org.whylag.trace;

import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

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

    /** The golden file of this writer: see docs/trace-format.md, and crates/trace/golden. */
    private static void golden(Path target) throws Exception {
        Tracer tracer = Tracer.with().threads(2).recent(4).slow(2).histograms(2).open();
        Flow order =
                tracer.flow("order").infra("journalled", "replicated").thresholdNanos(1_000_000_000).build();
        int fill = order.publish("fill");
        int report = order.publish("trade-report");
        Flow cancel = tracer.flow("cancel").build();
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        for (long id = 1; id <= 6; id++) {
            // Orders 3 and 6 waited 2 s before they were begun, and are slow.
            trace.begin(order, id, System.nanoTime() - (id % 3 == 0 ? 2_000_000_000L : 0));
            if (id == 1) {
                Thread replicator = new Thread(() -> trace.mark(1), "replicator");
                replicator.start();
                replicator.join();
            }
            trace.mark(0);
            logic.start(trace, (int) id);
            logic.published(trace, fill);
            logic.published(trace, report);
            logic.end(trace);
        }
        Fixture.message(logic, cancel, trace, 100);
        trace.begin(order, 7, System.nanoTime());
        trace.begin(order, 8, System.nanoTime());
        logic.start(trace);
        logic.published(trace, fill);
        Files.copy(tracer.path(), target, StandardCopyOption.REPLACE_EXISTING);
        tracer.close();
    }

    private Child() {}
}
