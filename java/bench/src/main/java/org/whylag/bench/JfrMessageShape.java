package org.whylag.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Recording;
import jdk.jfr.StackTrace;

/** JFR at its best: one event for each message, whose fields are the eight times. */
final class JfrMessageShape implements Shape, AutoCloseable {
    @Name("bench.Message")
    @Category("bench")
    @StackTrace(false)
    static final class Message extends Event {
        long id;
        long received;
        long journalled;
        long replicated;
        long started;
        long fill;
        long trade;
        long report;
        long ended;
    }

    private final Recording recording = new Recording();
    private final Path file;
    private final Message[] slots = new Message[SLOTS];

    JfrMessageShape() throws IOException {
        file = Files.createTempFile("whylag-bench", ".jfr");
        recording.enable(Message.class);
        recording.setMaxSize(64 << 20);
        recording.setToDisk(true);
        recording.setDestination(file);
        recording.start();
    }

    @Override
    public void receive(int slot, long id) {
        Message message = new Message();
        message.id = id;
        message.received = System.nanoTime();
        message.journalled = System.nanoTime();
        message.replicated = System.nanoTime();
        slots[slot] = message;
    }

    @Override
    public void handle(int slot) {
        Message message = slots[slot];
        message.started = System.nanoTime();
        message.fill = System.nanoTime();
        message.trade = System.nanoTime();
        message.report = System.nanoTime();
        message.ended = System.nanoTime();
        message.commit();
    }

    @Override
    public void close() throws IOException {
        recording.close();
        Files.deleteIfExists(file);
    }
}
