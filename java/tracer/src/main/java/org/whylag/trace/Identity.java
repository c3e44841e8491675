package org.whylag.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Who this process is, as the kernel reports it: what names the file and lets a reader check it. */
record Identity(int pid, long start, long uid, long pidNamespace, String bootId) {
    /** Position of the start time in a stat line, counted from the field after the name. */
    private static final int START_AFTER_NAME = 19;

    static Identity ofThisProcess() {
        try {
            Path self = Path.of("/proc/self");
            // "pid:[4026531836]"
            String namespace = Files.readSymbolicLink(self.resolve("ns/pid")).toString();
            return new Identity(
                    Math.toIntExact(ProcessHandle.current().pid()),
                    start(Files.readString(self.resolve("stat"))),
                    effectiveUser(self),
                    Long.parseLong(namespace.replaceAll("\\D", "")),
                    Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip());
        } catch (IOException e) {
            throw new TraceException("Cannot trace: /proc cannot be read (" + e + ")", e);
        }
    }

    /** Field 22 of a stat line: clock ticks since boot. */
    static long start(String stat) {
        // The name in parentheses may itself contain spaces and parentheses.
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[START_AFTER_NAME]);
    }

    private static long effectiveUser(Path self) throws IOException {
        for (String line : Files.readAllLines(self.resolve("status"))) {
            if (line.startsWith("Uid:")) {
                return Long.parseLong(line.split("\\s+")[2]);
            }
        }
        throw new IOException("/proc/self/status has no Uid");
    }
}
