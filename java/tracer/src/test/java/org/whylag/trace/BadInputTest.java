package org.whylag.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Wrong at set-up: a clear refusal. Wrong later: counted, and the application goes on. */
class BadInputTest extends Fixture {
    private static void refused(String reason, Executable setUp) {
        String message = assertThrows(TraceException.class, setUp).getMessage();
        assertTrue(message.contains(reason), message);
    }

    private static String[] names(int count) {
        return IntStream.range(0, count).mapToObj(i -> "n" + i).toArray(String[]::new);
    }

    @Test
    void namesThatDoNotFit() throws IOException {
        open();
        tracer.flow("x".repeat(56)).build();
        refused("57 bytes of UTF-8; at most 56", () -> tracer.flow("x".repeat(57)));
        refused("58 bytes", () -> tracer.flow("\u00e4".repeat(29)));
        refused("empty", () -> tracer.flow(""));
        refused("control characters", () -> tracer.flow("a\nb"));
        refused("surrogate", () -> tracer.flow("a\ud800"));
        Flow flow = tracer.flow("order").build();
        refused("57 bytes", () -> flow.publish("x".repeat(57)));
        assertEquals("x".repeat(56), read().name(1));
    }

    @Test
    void moreThanThereIsRoomFor() throws IOException {
        open();
        refused("9 infrastructure points; at most 8", () -> tracer.flow("a").infra(names(9)));
        refused("17 names of publishes; at most 16", () -> tracer.flow("a").publishes(names(17)));
        Flow full = tracer.flow("a").infra(names(8)).publishes(names(16)).build();
        refused("at most 16", () -> full.publish("one more"));
        refused("There is a flow 'a' already", () -> tracer.flow("a").build());
        for (int i = 1; i < 16; i++) {
            tracer.flow("flow" + i).build();
        }
        refused("at most 16", () -> tracer.flow("one more").build());
        assertEquals(4, read().u64(648));
    }

    @Test
    void moreNamesThanPlaces() throws IOException {
        tracer = room().names(2).open();
        Flow order = tracer.flow("order").publishes("fill").build();
        refused("all 2 places are taken", () -> order.publish("one more"));
        assertEquals(1, read().u64(648));
    }

    @Test
    void thresholdOutsideItsRange() {
        open();
        refused("999 ns, is not in 1 us to 1 h", () -> tracer.flow("a").thresholdNanos(999));
        refused("1 h", () -> tracer.flow("a").thresholdNanos(3_600_000_000_001L));
    }

    @Test
    void roomOutsideItsRange() {
        refused("threads: 257 is not in 1 to 256", () -> room().threads(257));
        refused("recent: 3 is not a power of two", () -> room().recent(3));
        refused("slow: 0", () -> room().slow(0));
        refused(
                "MiB; at most 256",
                () -> room().threads(256).recent(1 << 16).slow(1 << 16).open());
    }

    @Test
    void tooManyThreads() throws Exception {
        tracer = room().threads(1).open();
        Logic logic = tracer.logic();
        Flow order = tracer.flow("order").infra("journalled").build();
        Trace trace = new Trace();
        trace.begin(order, 1, System.nanoTime());
        Thread other =
                new Thread(
                        () -> {
                            trace.mark(0);
                            trace.mark(0);
                            refused("all 1 entries are taken", tracer::logic);
                        });
        Throwable[] failed = new Throwable[1];
        other.setUncaughtExceptionHandler((thread, error) -> failed[0] = error);
        other.start();
        other.join();
        assertEquals(null, failed[0]);
        logic.start(trace);
        logic.end(trace);
        TraceBytes file = read();
        assertTrue(file.record(4, 0, 0).pointTime(0) > 0, "the time is kept");
        assertEquals(-1, file.record(4, 0, 0).pointThread(0), "the thread is unknown");
        assertEquals(1, file.u64(640), "counted once");
    }

    @Test
    void moreFlowsThanHistograms() throws IOException {
        tracer = room().histograms(1).open();
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        message(logic, tracer.flow("a").build(), trace, 1);
        Flow second = tracer.flow("b").build();
        message(logic, second, trace, 2);
        message(logic, second, trace, 3);
        TraceBytes file = read();
        assertEquals(1, file.histogram(0, 0).count());
        assertEquals(3, file.record(4, 0, 2).id(), "records do not need histograms");
        assertEquals(1, file.u64(648));
    }

    @Test
    void pointAndPublishThatDoNotExist() throws IOException {
        open();
        Flow order = tracer.flow("order").infra("journalled").build();
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        trace.begin(order, 1, System.nanoTime());
        trace.mark(1);
        trace.mark(-1);
        logic.start(trace);
        logic.published(trace, -1);
        logic.published(trace, 99);
        logic.end(trace);
        TraceBytes file = read();
        assertEquals(2, file.u64(file.flowAt(0) + 208));
        assertEquals(2, file.record(4, 0, 0).publishes());
        assertEquals(2, file.histogram(0, 3).count());
    }

    @Test
    void callsOutOfOrderDoNothing() throws IOException {
        open();
        Flow order = tracer.flow("order").infra("journalled").build();
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        trace.mark(0);
        logic.start(trace);
        logic.published(trace, 0);
        logic.end(trace);
        logic.end(trace);
        assertEquals(0, read().u64(read().threadAt(0) + 32));
    }

    @Test
    void logicOfAnotherThreadIsDropped() throws Exception {
        open();
        Flow order = tracer.flow("order").build();
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        trace.begin(order, 1, System.nanoTime());
        Thread other = new Thread(() -> logic.start(trace));
        other.start();
        other.join();
        logic.end(trace);
        assertEquals(1, read().u64(640));
        assertEquals(0, read().u64(read().threadAt(0) + 32));
    }

    @Test
    void secondTracer() {
        open();
        refused("this process has a tracer", () -> room().open());
        tracer.close();
        tracer = room().open();
        assertFalse(tracer.isOff());
    }

    @Test
    void whatAnExecLeftIsReplaced() throws IOException {
        open();
        Path path = tracer.path();
        tracer.close();
        Files.writeString(path, "of the program before");
        tracer = room().open();
        assertEquals("WHYLAGT\n", read().text(0, 8));
    }

    @Test
    void folderOfOthers() throws IOException {
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        refused("others may write", () -> room().open());
        Path link = folder.resolve("link");
        Files.createSymbolicLink(link, folder);
        refused("is not a folder", () -> room().folder(link).open());
        refused("there is no folder", () -> room().folder(folder.resolve("none/below")).open());
    }

    @Test
    void folderOnADisk() {
        refused("not on tmpfs", () -> room().folder(Path.of("/proc/self/fd")).open());
    }

    @Test
    void offDoesNothing() {
        Tracer off = Tracer.off();
        assertTrue(off.isOff());
        Flow order = off.flow("order").infra("journalled").build();
        int fill = order.publish("fill");
        Trace trace = new Trace();
        Logic logic = off.logic();
        trace.begin(order, 1, System.nanoTime());
        trace.mark(0);
        logic.start(trace);
        logic.published(trace, fill);
        logic.end(trace);
        off.register();
        off.close();
        assertEquals(null, off.path());
    }

    @Test
    void messagesAfterTheCloseAreNotTraced() {
        open();
        Flow order = tracer.flow("order").build();
        Logic logic = tracer.logic();
        Trace trace = new Trace();
        trace.begin(order, 1, System.nanoTime());
        tracer.close();
        logic.start(trace);
        logic.end(trace);
        message(logic, order, trace, 2);
        assertEquals(null, trace.flow);
    }
}
