package org.whylag.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import jdk.jfr.Event;
import jdk.jfr.Recording;

/** JFR as it is used: to disk. The file goes when this is closed. */
final class FlightRecording implements AutoCloseable {
    private final Recording recording = new Recording();
    private final Path file;

    FlightRecording(Class<? extends Event> event) throws IOException {
        file = Files.createTempFile("whylag-bench", ".jfr");
        recording.enable(event);
        recording.setMaxSize(64 << 20);
        recording.setToDisk(true);
        recording.setDestination(file);
        recording.start();
    }

    @Override
    public void close() throws IOException {
        recording.close();
        Files.deleteIfExists(file);
    }
}
