package org.whylag.trace;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * A small reader of its own: its numbers come from docs/trace-format.md, not from the descriptors
 * that it is there to check.
 */
final class TraceBytes {
    final ByteBuffer bytes;
    private final Map<Integer, Section> sections = new HashMap<>();

    record Section(int entryLength, long entries, int offset, long length) {}

    record Record(int at, TraceBytes file) {
        long head() {
            return file.u64(at);
        }

        long id() {
            return file.u64(at + 8);
        }

        int flow() {
            return file.u32(at + 16);
        }

        boolean isSlow() {
            return file.u32(at + 20) == 1;
        }

        long t0() {
            return file.u64(at + 24);
        }

        long logicStart() {
            return file.u64(at + 32);
        }

        long end() {
            return file.u64(at + 40);
        }

        int depth() {
            return file.u32(at + 48);
        }

        int thread() {
            return file.u32(at + 52);
        }

        int publishes() {
            return file.u32(at + 56);
        }

        long longestGap() {
            return file.u64(at + 64);
        }

        long pointTime(int point) {
            return file.u64(at + 72 + 16 * point);
        }

        int pointThread(int point) {
            return file.u32(at + 80 + 16 * point);
        }

        long publishTime(int publish) {
            return file.u64(at + 200 + 16 * publish);
        }

        String publishName(int publish) {
            return file.name(file.u32(at + 208 + 16 * publish));
        }

        long tail() {
            return file.u64(at + 504);
        }
    }

    record Histogram(int at, TraceBytes file) {
        long count() {
            return file.u64(at);
        }

        long sum() {
            return file.u64(at + 8);
        }

        long second() {
            return file.u64(at + 16);
        }

        long maximum() {
            return file.u64(at + 24);
        }

        long bucket(int index) {
            return file.u64(at + 64 + 8 * index);
        }

        long bucketSum() {
            long sum = 0;
            for (int i = 0; i < 1056; i++) {
                sum += bucket(i);
            }
            return sum;
        }
    }

    TraceBytes(Path path) throws IOException {
        this(Files.readAllBytes(path));
    }

    TraceBytes(byte[] file) {
        bytes = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < u32(108); i++) {
            int at = 112 + 32 * i;
            sections.put(
                    u32(at),
                    new Section(u32(at + 4), u64(at + 8), (int) u64(at + 16), u64(at + 24)));
        }
    }

    int u16(int at) {
        return Short.toUnsignedInt(bytes.getShort(at));
    }

    int u32(int at) {
        return bytes.getInt(at);
    }

    long u64(int at) {
        return bytes.getLong(at);
    }

    String text(int at, int length) {
        byte[] text = new byte[length];
        bytes.get(at, text);
        return new String(text, StandardCharsets.UTF_8);
    }

    Section section(int kind) {
        return sections.get(kind);
    }

    private int entry(int kind, int index) {
        Section section = section(kind);
        return section.offset + index * section.entryLength;
    }

    String name(int id) {
        if (id == 0) {
            return null;
        }
        int at = entry(1, id - 1);
        if (u32(at) != id) {
            throw new AssertionError("name " + id + " has id " + u32(at));
        }
        return text(at + 8, u16(at + 4));
    }

    int flowAt(int index) {
        return entry(2, index);
    }

    long begun(int flow) {
        return u64(flowAt(flow) + 192) + u64(flowAt(flow) + 216);
    }

    int threadAt(int index) {
        return entry(3, index);
    }

    /** Record k of a thread, in the ring of that kind (4 recent, 5 slow). */
    Record record(int kind, int thread, long k) {
        int perThread = (int) (section(kind).entries / section(3).entries);
        return new Record(entry(kind, thread * perThread + (int) (k % perThread)), this);
    }

    int blockAt(int index) {
        return entry(6, index);
    }

    Histogram histogram(int block, int metric) {
        return new Histogram(blockAt(block) + 64 + metric * 8512, this);
    }
}
