package org.whylag.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a message leaves in the file. */
class MessageTest extends Fixture {
    private static final int JOURNALLED = 0;
    private static final int REPLICATED = 1;
    private final Trace trace = new Trace();
    private Flow order;
    private Logic logic;
    private int fill;

    @BeforeEach
    void openWithAFlow() {
        open();
        order = tracer.flow("order").infra("journalled", "replicated").thresholdNanos(50_000_000).build();
        fill = order.publish("fill");
        logic = tracer.logic();
    }

    @Test
    void recordHasTheWholeBreakdown() throws IOException {
        long t0 = System.nanoTime();
        trace.begin(order, -2, t0);
        trace.mark(REPLICATED);
        long replicated = System.nanoTime();
        trace.mark(JOURNALLED);
        logic.start(trace, 7);
        long started = System.nanoTime();
        logic.published(trace, fill);
        logic.published(trace, 5);
        logic.end(trace);
        long ended = System.nanoTime();

        TraceBytes.Record record = read().record(4, 0, 0);
        assertEquals(1, record.head());
        assertEquals(1, record.tail());
        assertEquals(-2, record.id());
        assertEquals(1, record.flow());
        assertFalse(record.isSlow());
        assertEquals(t0, record.t0());
        assertTrue(record.pointTime(REPLICATED) >= t0);
        assertTrue(record.pointTime(REPLICATED) <= replicated);
        assertTrue(record.pointTime(JOURNALLED) >= replicated);
        assertEquals(0, record.pointThread(JOURNALLED));
        assertTrue(record.logicStart() >= record.pointTime(JOURNALLED));
        assertTrue(record.logicStart() <= started);
        assertEquals(7, record.depth());
        assertEquals(0, record.thread());
        assertEquals(2, record.publishes());
        assertTrue(record.publishTime(0) >= started);
        assertEquals("fill", record.publishName(0));
        assertTrue(record.publishTime(1) >= record.publishTime(0));
        assertNull(record.publishName(1), "a number that publish() did not give");
        long first = record.publishTime(0) - record.logicStart();
        long second = record.publishTime(1) - record.publishTime(0);
        assertEquals(Math.max(first, second), record.longestGap());
        assertTrue(record.end() >= record.publishTime(1) && record.end() <= ended);
    }

    @Test
    void unmarkedPointAndUnknownDepthSaySo() throws IOException {
        message(logic, order, trace, 1);
        TraceBytes.Record record = read().record(4, 0, 0);
        assertEquals(0, record.pointTime(JOURNALLED));
        assertEquals(-1, record.depth());
    }

    @Test
    void threadEntryIsTheOneOfTheKernel() throws IOException {
        TraceBytes file = read();
        int at = file.threadAt(0);
        String self = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        assertEquals(2, file.u32(at));
        assertEquals(self, "" + file.u32(at + 4));
        String stat = Files.readString(Path.of("/proc/thread-self/stat"));
        assertEquals(stat.substring(stat.lastIndexOf(')') + 2).split(" ")[19], "" + file.u64(at + 8));
        String comm = Files.readString(Path.of("/proc/thread-self/comm")).strip();
        assertEquals(comm, file.text(at + 16, 16).replace("\0", ""));
        assertEquals(0, file.u32(file.threadAt(1)));
    }

    @Test
    void slowMessageIsInBothRings() throws IOException {
        message(logic, order, trace, 1);
        trace.begin(order, 2, System.nanoTime() - 60_000_000);
        logic.start(trace);
        logic.end(trace);
        TraceBytes file = read();
        assertEquals(2, file.u64(file.threadAt(0) + 32));
        assertEquals(1, file.u64(file.threadAt(0) + 40));
        assertFalse(file.record(4, 0, 0).isSlow());
        assertTrue(file.record(4, 0, 1).isSlow());
        assertTrue(file.record(5, 0, 0).isSlow());
        assertEquals(2, file.record(5, 0, 0).id());
        assertEquals(1, file.record(5, 0, 0).head());
    }

    @Test
    void thresholdMayBeChangedFromOutside() throws IOException {
        assertFalse(isSlowAfter(0, 40_000_000), "0 means the 50 ms that were declared");
        assertTrue(isSlowAfter(0, 60_000_000));
        assertTrue(isSlowAfter(1, 10_000_000), "1 ns is taken as 1 us");
        assertFalse(isSlowAfter(-1, 3_599_000_000_000L), "2^64 - 1 is taken as 1 h");
        assertTrue(isSlowAfter(-1, 3_601_000_000_000L));
    }

    private boolean isSlowAfter(long threshold, long nanos) throws IOException {
        int at = read().flowAt(0) + 112;
        try (FileChannel channel = FileChannel.open(tracer.path(), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            var outside = channel.map(FileChannel.MapMode.READ_WRITE, 0, channel.size());
            outside.order(ByteOrder.LITTLE_ENDIAN).putLong(at, threshold);
        }
        trace.begin(order, 1, System.nanoTime() - nanos);
        logic.start(trace);
        logic.end(trace);
        TraceBytes file = read();
        return file.record(4, 0, file.u64(file.threadAt(0) + 32) - 1).isSlow();
    }

    @Test
    void ringWrapsAndLeavesNothingOfTheLapBefore() throws IOException {
        for (int id = 0; id < 6; id++) {
            trace.begin(order, id, System.nanoTime());
            if (id < 4) {
                trace.mark(JOURNALLED);
            }
            logic.start(trace);
            logic.end(trace);
        }
        TraceBytes file = read();
        assertEquals(6, file.u64(file.threadAt(0) + 32));
        for (int k = 2; k < 6; k++) {
            TraceBytes.Record record = file.record(4, 0, k);
            assertEquals(k, record.id());
            assertEquals(k + 1, record.head());
            assertEquals(k + 1, record.tail());
            assertEquals(k < 4, record.pointTime(JOURNALLED) != 0);
        }
    }

    @Test
    void histogramsCountWhatTheRecordsSay() throws IOException {
        for (int i = 0; i < 3; i++) {
            trace.begin(order, i, System.nanoTime() - 1_000_000L * i);
            trace.mark(REPLICATED);
            logic.start(trace);
            logic.published(trace, fill);
            logic.end(trace);
        }
        TraceBytes file = read();
        assertEquals(2, file.u32(file.blockAt(0)));
        assertEquals(0, file.u32(file.blockAt(0) + 4));
        assertEquals(1, file.u32(file.blockAt(0) + 8));
        assertEquals(0, file.u32(file.blockAt(1)));
        long[][] sums = new long[28][2];
        for (int k = 0; k < 3; k++) {
            TraceBytes.Record record = file.record(4, 0, k);
            add(sums[0], record.end() - record.t0());
            add(sums[1], record.logicStart() - record.t0());
            add(sums[2], record.end() - record.logicStart());
            add(sums[3], record.publishTime(0) - record.logicStart());
            add(sums[5], record.pointTime(REPLICATED) - record.t0());
            add(sums[12], record.publishTime(0) - record.logicStart());
        }
        for (int metric = 0; metric < 28; metric++) {
            TraceBytes.Histogram histogram = file.histogram(0, metric);
            assertEquals(sums[metric][0], histogram.count(), "metric " + metric);
            assertEquals(sums[metric][1], histogram.sum(), "metric " + metric);
            assertEquals(histogram.count(), histogram.bucketSum(), "metric " + metric);
        }
        TraceBytes.Record last = file.record(4, 0, 2);
        assertEquals(last.end() / 1_000_000_000, file.histogram(0, 0).second());
        assertTrue(file.histogram(0, 0).bucket(bucket(last.end() - last.t0())) > 0);
        assertTrue(file.histogram(0, 0).maximum() >= last.end() - last.t0());
    }

    private static void add(long[] countAndSum, long value) {
        countAndSum[0]++;
        countAndSum[1] += value;
    }

    /** As the page says it, by counting. */
    private static int bucket(long value) {
        int shift = 0;
        while (value >> shift >= 64) {
            shift++;
        }
        return (shift << 5) + (int) (value >> shift);
    }

    @Test
    void bucketsAreThoseOfThePage() {
        for (long value = 0; value < 1L << 37; value = value * 9 / 8 + 1) {
            assertEquals(bucket(value), HistogramDescriptor.bucket(value), "" + value);
        }
        assertEquals(1055, HistogramDescriptor.bucket((1L << 37) - 1));
        assertEquals(1055, HistogramDescriptor.bucket(1L << 37));
        assertEquals(1055, HistogramDescriptor.bucket(Long.MAX_VALUE));
    }

    @Test
    void maximumIsKeptForThisSecondAndTheOneBefore() {
        Layout layout = new Layout(1, 1, 1, 1, 1);
        Memory memory = TestMemory.of(layout.length);
        int at = layout.blocksAt + 64;
        Histograms histograms = Histograms.claim(memory, layout, 0, 1);
        Trace ended = new Trace();
        for (long[] totalAndEnd :
                new long[][] {{70, 5_000_000_070L}, {90, 5_999_999_999L}, {40, 7_000_000_000L}}) {
            ended.t0 = totalAndEnd[1] - totalAndEnd[0];
            ended.logicStart = ended.t0;
            histograms.ended(ended, 0, totalAndEnd[1]);
        }
        assertEquals(7, memory.getLongOpaque(at + 16));
        assertEquals(40, memory.getLongOpaque(at + 24));
        assertEquals(5, memory.getLongOpaque(at + 32));
        assertEquals(90, memory.getLongOpaque(at + 40));
        assertEquals(3, memory.getLongOpaque(at));
        assertEquals(200, memory.getLongOpaque(at + 8));
    }

    @Test
    void messagesBegunByAnyThreadAreCounted() throws Exception {
        Thread[] threads = new Thread[3];
        for (int thread = 0; thread < threads.length; thread++) {
            threads[thread] =
                    new Thread(
                            () -> {
                                Trace own = new Trace();
                                for (int id = 0; id < 20_000; id++) {
                                    own.begin(order, id, System.nanoTime());
                                }
                            });
            threads[thread].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        TraceBytes file = read();
        assertEquals(60_000, file.begun(0));
        assertEquals(20_000, file.u64(file.flowAt(0) + 216), "those of one thread");
    }

    @Test
    void marksOfOtherThreadsCarryTheirIndex() throws Exception {
        trace.begin(order, 1, System.nanoTime());
        CountDownLatch both = new CountDownLatch(2);
        Thread[] stages = new Thread[2];
        for (int point = 0; point < 2; point++) {
            int own = point;
            stages[point] =
                    new Thread(
                            () -> {
                                both.countDown();
                                try {
                                    both.await();
                                } catch (InterruptedException e) {
                                    throw new AssertionError(e);
                                }
                                trace.mark(own);
                            },
                            "stage-" + point);
            stages[point].start();
        }
        for (Thread stage : stages) {
            stage.join();
        }
        logic.start(trace);
        logic.end(trace);
        TraceBytes file = read();
        TraceBytes.Record record = file.record(4, 0, 0);
        for (int point = 0; point < 2; point++) {
            int thread = record.pointThread(point);
            assertNotEquals(0, thread);
            assertEquals("stage-" + point, file.text(file.threadAt(thread) + 16, 7));
            assertTrue(record.pointTime(point) >= record.t0());
        }
    }

    @Test
    void currentMessageIsVisibleUntilItEnds() throws IOException {
        trace.begin(order, 77, System.nanoTime());
        logic.start(trace);
        logic.published(trace, fill);
        TraceBytes during = read();
        int at = during.threadAt(0) + 64;
        assertEquals(0, during.u64(at) % 2);
        assertEquals(77, during.u64(at + 8));
        assertEquals(1, during.u32(at + 16));
        assertEquals(1, during.u32(at + 20));
        assertEquals(trace.t0, during.u64(at + 24));
        assertEquals(trace.logicStart, during.u64(at + 32));
        assertEquals(trace.last, during.u64(at + 40));
        assertEquals("fill", during.name(during.u32(at + 48)));
        logic.end(trace);
        assertEquals(0, read().u32(at + 20));
        assertNotEquals(during.u64(at), read().u64(at));
    }

    @Test
    void moreThanSixteenPublishesCountWithoutACell() throws IOException {
        trace.begin(order, 1, System.nanoTime());
        logic.start(trace);
        for (int i = 0; i < 20; i++) {
            logic.published(trace, fill);
        }
        logic.end(trace);
        TraceBytes file = read();
        assertEquals(20, file.record(4, 0, 0).publishes());
        assertEquals(20, file.histogram(0, 3).count());
        assertEquals(20, file.histogram(0, 12).count());
        assertEquals(1, file.record(4, 0, 0).tail(), "the tail is not overwritten");
    }

    @Test
    void abandonedIsCountedAndNeverInvented() throws IOException {
        trace.begin(order, 1, System.nanoTime());
        trace.begin(order, 2, System.nanoTime());
        logic.end(trace);
        message(logic, order, trace, 3);
        TraceBytes file = read();
        assertEquals(3, file.begun(0));
        assertEquals(2, file.u64(file.flowAt(0) + 200), "begun again, and ended without logic");
        assertEquals(1, file.u64(file.threadAt(0) + 32));
        assertEquals(3, file.record(4, 0, 0).id());
    }

    @Test
    void timesThatRunBackwardsCountAsNothing() throws IOException {
        long future = System.nanoTime() + 60_000_000_000L;
        trace.begin(order, 1, future);
        trace.mark(JOURNALLED);
        logic.start(trace);
        logic.published(trace, fill);
        logic.end(trace);
        TraceBytes file = read();
        TraceBytes.Record record = file.record(4, 0, 0);
        assertEquals(future, record.logicStart());
        assertEquals(future, record.publishTime(0));
        assertEquals(future, record.end());
        for (int metric : new int[] {0, 1, 2, 3, 4, 12}) {
            assertEquals(1, file.histogram(0, metric).bucket(0), "metric " + metric);
        }
    }
}
