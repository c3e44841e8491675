package org.whylag.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A folder on a tmpfs for each test, and a tracer that is closed after it. */
abstract class Fixture {
    Path folder;
    Tracer tracer;

    @BeforeEach
    void makeFolder() throws IOException {
        folder = Files.createTempDirectory(Path.of("/dev/shm"), "whylag-test");
    }

    @AfterEach
    void removeFolder() throws IOException {
        if (tracer != null) {
            tracer.close();
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path each : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        }
    }

    TracerBuilder room() {
        return Tracer.with().folder(folder).threads(4).recent(4).slow(2).histograms(2);
    }

    void open() {
        tracer = room().open();
    }

    TraceBytes read() throws IOException {
        return new TraceBytes(tracer.path());
    }

    static void message(Logic logic, Flow flow, Trace trace, long id) {
        trace.begin(flow, id, System.nanoTime());
        logic.start(trace);
        logic.end(trace);
    }
}
