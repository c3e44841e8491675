package org.whylag.exchange;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A process of the exchange. All but the load end when their standard input does; that one has its time. */
final class Part implements AutoCloseable {
    private static final int PATIENCE_SECONDS = 10;

    final Process process;
    private final String name;
    private final BufferedReader output;

    Part(Class<?> main, List<String> jvm, List<String> arguments) throws IOException {
        name = main.getSimpleName();
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + "/bin/java");
        command.addAll(jvm);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(arguments);
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        output = new BufferedReader(new InputStreamReader(process.getInputStream()));
    }

    String line() throws IOException {
        String line = output.readLine();
        if (line == null) {
            throw new IOException(name + " has ended unexpectedly");
        }
        return line;
    }

    /** Lets it end, and prints what it has to say. */
    void finish() throws IOException, InterruptedException {
        process.getOutputStream().close();
        output.lines().forEach(System.out::println);
        if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
            throw new IOException(name + " did not end well");
        }
    }

    /** Called by a part that would run on: ends it when the process that started it is gone. */
    static void endWithParent() {
        Thread watch =
                new Thread(
                        () -> {
                            try {
                                System.in.transferTo(OutputStream.nullOutputStream());
                            } catch (IOException e) {
                                // As good as the end of it.
                            }
                            System.exit(0);
                        },
                        "parent");
        watch.setDaemon(true);
        watch.start();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
