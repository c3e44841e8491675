package org.whylag.exchange;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Starts the parts, lets the load run, and prints what it saw. */
public final class Exchange {
    public static void main(String[] arguments) throws Exception {
        if (List.of(arguments).contains("--help")) {
            System.out.print(Options.USAGE);
            return;
        }
        Options options;
        try {
            options = Options.of(List.of(arguments));
        } catch (IllegalArgumentException e) {
            System.err.println("exchange: " + e.getMessage() + "\n\n" + Options.USAGE);
            System.exit(2);
            return;
        }
        try {
            run(options, List.of(arguments));
        } catch (IOException e) {
            System.err.println("exchange: " + e.getMessage());
            System.exit(1);
        }
    }

    private static void run(Options options, List<String> arguments)
            throws IOException, InterruptedException {
        List<String> small = List.of("-Xmx64m", "-XX:+UseSerialGC");
        List<Part> parts = new ArrayList<>();
        // The parts also end when this process is killed: their standard input does.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> parts.forEach(Part::close)));
        Part replica = new Part(Replica.class, small, List.of());
        parts.add(replica);
        List<String> engineArguments = new ArrayList<>(List.of(replica.line()));
        engineArguments.addAll(arguments);
        Part engine =
                new Part(
                        Engine.class,
                        List.of("-Xms256m", "-Xmx256m", "-XX:+UseParallelGC"),
                        engineArguments);
        parts.add(engine);
        String port = engine.line();
        System.out.println("engine: pid " + engine.process.pid());
        if (options.slowJournal) {
            parts.add(new Part(Neighbour.class, small, List.of(options.folder.toString())));
        }
        Part load =
                new Part(
                        Load.class,
                        small,
                        List.of(port, "" + options.seconds, "" + options.rate));
        parts.add(load);

        load.finish();
        System.out.print("engine: ");
        engine.finish();
    }

    private Exchange() {}
}
