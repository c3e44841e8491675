package org.whylag.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The file, its header and its table, byte for byte. */
class FileTest extends Fixture {
    @Test
    void headerSaysWhoWroteIt() throws IOException {
        long before = System.nanoTime();
        long beforeUnix = System.currentTimeMillis() * 1_000_000;
        open();
        TraceBytes file = read();

        assertEquals("WHYLAGT\n", file.text(0, 8));
        assertEquals(1, file.u16(8));
        assertEquals(0, file.u16(10));
        assertEquals(0x01020304, file.u32(12));
        assertEquals(Files.size(tracer.path()), file.u64(16));
        assertEquals(ProcessHandle.current().pid(), file.u32(24));
        assertEquals(3, file.u32(28));
        String stat = Files.readString(Path.of("/proc/self/stat"));
        assertEquals(stat.substring(stat.lastIndexOf(')') + 2).split(" ")[19], "" + file.u64(32));
        assertEquals(
                "pid:[" + file.u64(40) + "]",
                Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString());
        assertEquals(
                Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip(),
                file.text(48, 36));
        assertEquals(1, file.u32(84));
        assertTrue(file.u64(88) >= beforeUnix);
        assertTrue(file.u64(96) >= before && file.u64(96) <= System.nanoTime());
        assertEquals(1, file.u32(104));
        assertEquals(6, file.u32(108));
        for (int at = 640; at < 4096; at += 8) {
            assertEquals(0, file.u64(at), "reserved at " + at);
        }
    }

    @Test
    void nameAndModeAreThoseOfThePage() throws IOException {
        open();
        String pid = "" + ProcessHandle.current().pid();
        assertEquals(pid + "-" + read().u64(32) + ".trace", tracer.path().getFileName().toString());
        assertEquals(
                "rw-------",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(tracer.path())));
        try (var others = Files.list(folder)) {
            assertEquals(1, others.count());
        }
    }

    @Test
    void sectionsHaveTheirSizesAndLieApart() throws IOException {
        open();
        TraceBytes file = read();
        int[] entryLengths = {64, 256, 256, 512, 512, 238_400};
        long[] entries = {256, 16, 4, 16, 8, 2};
        List<TraceBytes.Section> sections = new ArrayList<>();
        for (int kind = 1; kind <= 6; kind++) {
            TraceBytes.Section section = file.section(kind);
            assertNotNull(section);
            assertEquals(entryLengths[kind - 1], section.entryLength());
            assertEquals(entries[kind - 1], section.entries());
            assertTrue(section.length() >= section.entries() * section.entryLength());
            assertEquals(0, section.offset() % 64);
            sections.add(section);
        }
        sections.sort(Comparator.comparingInt(TraceBytes.Section::offset));
        long end = 4096;
        for (TraceBytes.Section section : sections) {
            assertTrue(section.offset() >= end);
            end = section.offset() + section.length();
        }
        assertTrue(end <= file.u64(16));
    }

    @Test
    void everyByteIsWritten() throws Exception {
        open();
        // 512-byte blocks that the file has: a hole would have none.
        Process stat = new ProcessBuilder("stat", "-c", "%b", tracer.path().toString()).start();
        long blocks = Long.parseLong(new String(stat.getInputStream().readAllBytes()).strip());
        assertTrue(blocks * 512 >= Files.size(tracer.path()));
    }

    @Test
    void normalEndRemovesTheFile() {
        open();
        Path path = tracer.path();
        assertTrue(Files.exists(path));
        tracer.close();
        tracer.close();
        assertFalse(Files.exists(path));
    }

    @Test
    void flowsAndNamesAreThoseGiven() throws IOException {
        open();
        Flow order =
                tracer.flow("order").infra("journalled", "replicated").thresholdNanos(100_000).build();
        assertEquals(0, order.publish("fill"));
        assertEquals(1, order.publish("trade-report"));
        assertEquals(0, order.publish("fill"));
        Flow cancel = tracer.flow("St\u00f6rung \u2713").publishes("fill").build();
        assertEquals(0, cancel.publish("fill"));
        TraceBytes file = read();

        int at = file.flowAt(0);
        assertEquals(1, file.u32(at));
        assertEquals("order", file.name(file.u32(at + 4)));
        assertEquals(2, file.u32(at + 8));
        assertEquals(16, file.u32(at + 12));
        assertEquals("journalled", file.name(file.u32(at + 16)));
        assertEquals("replicated", file.name(file.u32(at + 20)));
        assertEquals(0, file.u32(at + 24));
        assertEquals("fill", file.name(file.u32(at + 48)));
        assertEquals("trade-report", file.name(file.u32(at + 52)));
        assertEquals(0, file.u32(at + 56));
        assertEquals(100_000, file.u64(at + 112));
        int second = file.flowAt(1);
        assertEquals(2, file.u32(second));
        assertEquals("St\u00f6rung \u2713", file.name(file.u32(second + 4)));
        assertEquals(file.u32(at + 48), file.u32(second + 48), "one entry for one text");
        assertEquals(0, file.u32(file.flowAt(2)));
    }
}
