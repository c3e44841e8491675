package org.whylag.bench;

import java.io.IOException;
import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.Name;
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

    private final FlightRecording recording;
    private final Message[] slots = new Message[SLOTS];

    JfrMessageShape() throws IOException {
        recording = new FlightRecording(Message.class);
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
    }
}
