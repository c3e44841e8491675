package org.whylag.exchange;

import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The command line, handed on unchanged to the engine. */
final class Options {
    static final String USAGE =
            """
            exchange [--seconds 20] [--rate 2000] [--threshold-us 2000] [--folder DIR]
                     [--wait blocking|yielding|busy-spin]
                     [--chatty-clock] [--slow-journal] [--garbage]

            Runs a traced exchange and measures it from outside.
              --rate          orders per second, at even distances
              --threshold-us  an order that takes longer keeps its whole breakdown
              --folder        where the journal is, on a disk; usually below $TMPDIR or /tmp
              --wait          how the stages wait; all but blocking need a CPU per stage
            Faults:
              --chatty-clock  the stages look at the clock while they wait
              --slow-journal  a neighbour writes and fsyncs on the same disk
              --garbage       the publisher of trades leaves much to collect
            """;

    int seconds = 20;
    int rate = 2000;
    int thresholdMicros = 2000;
    Path folder = Path.of(System.getProperty("java.io.tmpdir"));
    String wait = "blocking";
    boolean chattyClock;
    boolean slowJournal;
    boolean garbage;

    static Options of(List<String> arguments) {
        Options options = new Options();
        var words = arguments.iterator();
        while (words.hasNext()) {
            String word = words.next();
            switch (word) {
                case "--chatty-clock" -> options.chattyClock = true;
                case "--slow-journal" -> options.slowJournal = true;
                case "--garbage" -> options.garbage = true;
                case "--seconds", "--rate", "--threshold-us", "--folder", "--wait" -> {
                    if (!words.hasNext()) {
                        throw new IllegalArgumentException(word + " needs a value");
                    }
                    options.set(word, words.next());
                }
                default -> throw new IllegalArgumentException("unknown: " + word);
            }
        }
        return options;
    }

    private void set(String word, String value) {
        switch (word) {
            case "--seconds" -> seconds = number(word, value, 3600);
            case "--rate" -> rate = number(word, value, 100_000);
            case "--threshold-us" -> thresholdMicros = number(word, value, 60_000_000);
            case "--wait" -> {
                wait = value;
                waitStrategy();
            }
            default -> {
                folder = Path.of(value);
                if (!Files.isDirectory(folder)) {
                    throw new IllegalArgumentException(value + " is not a folder");
                }
            }
        }
    }

    private static int number(String word, String value, int most) {
        try {
            int number = Integer.parseInt(value);
            if (number >= 1 && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // The same message as for a number out of range.
        }
        throw new IllegalArgumentException(
                "%s takes a number from 1 to %d, not %s".formatted(word, most, value));
    }

    /** A new one: a blocking strategy belongs to one ring. */
    WaitStrategy waitStrategy() {
        if (chattyClock) {
            return new ChattyClockWaitStrategy();
        }
        return switch (wait) {
            case "blocking" -> new BlockingWaitStrategy();
            case "yielding" -> new YieldingWaitStrategy();
            case "busy-spin" -> new BusySpinWaitStrategy();
            default -> throw new IllegalArgumentException("--wait takes blocking, yielding or busy-spin");
        };
    }
}
