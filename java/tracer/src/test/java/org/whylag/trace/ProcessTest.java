package org.whylag.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;

/** Whole processes: how one ends, what it finds in the environment, and what it is refused. */
class ProcessTest extends Fixture {
    private static final String JAVA = System.getProperty("java.home") + "/bin/java";
    private static final String CLASSES = System.getProperty("java.class.path");

    private Process start(String... command) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("WHYLAG_TRACE_DIR", folder.toString());
        return builder.start();
    }

    private Process child(String mode) throws IOException {
        return start(JAVA, "-cp", CLASSES, "org.whylag.trace.Child", mode);
    }

    private static String outputOf(Process process) throws Exception {
        String output = new String(process.getInputStream().readAllBytes()).strip();
        process.waitFor();
        return output;
    }

    @Test
    void killedProcessLeavesAWholeFile() throws Exception {
        Process process = child("endless");
        Path path =
                Path.of(new BufferedReader(new InputStreamReader(process.getInputStream())).readLine());
        for (int look = 0; look < 100 && new TraceBytes(path).record(4, 0, 0).head() < 1000; look++) {
            Thread.sleep(20);
        }
        process.destroyForcibly().waitFor();

        TraceBytes file = new TraceBytes(path);
        assertEquals(1, file.u32(84), "running, as far as it knew");
        long written = file.u64(file.threadAt(0) + 32);
        assertTrue(written >= 1000);
        // The place of record `written` holds the oldest one, which may be just being overwritten.
        for (long k = written - 3; k < written; k++) {
            TraceBytes.Record record = file.record(4, 0, k);
            assertEquals(k + 1, record.head());
            assertEquals(k + 1, record.tail());
            assertEquals(k, record.id());
        }
        assertTrue(file.begun(0) >= written);
    }

    @Test
    void exitRemovesTheFile() throws Exception {
        Process process = child("exit");
        Path path = Path.of(outputOf(process));
        assertEquals(3, process.exitValue());
        assertFalse(Files.exists(path));
    }

    @Test
    void environmentTurnsItOffOrKeepsTheFile() throws Exception {
        String child = JAVA + " -cp '" + CLASSES + "' org.whylag.trace.Child ";
        assertEquals("off", outputOf(start("sh", "-c", "WHYLAG_TRACE=off " + child + "open")));
        Path kept = Path.of(outputOf(start("sh", "-c", "WHYLAG_TRACE_KEEP=1 " + child + "exit")));
        assertEquals(2, new TraceBytes(kept).u32(84), "closed");
    }

    /** In a mount namespace of its own, as in a container with a small /dev/shm. */
    private String openOnASmallTmpfs(String options) throws Exception {
        Process process =
                start(
                        "unshare",
                        "-m",
                        "sh",
                        "-c",
                        "mount -t tmpfs -o mode=700," + options + " none '" + folder + "' && "
                                + JAVA + " -cp '" + CLASSES + "' org.whylag.trace.Child open; "
                                + "ls -A '" + folder + "'");
        String output = outputOf(process);
        assumeTrue(!output.contains("not permitted"), "needs root");
        return output;
    }

    @Test
    void smallSharedMemoryIsARefusalNotASignal() throws Exception {
        String output = openOnASmallTmpfs("size=1m");
        assertTrue(output.startsWith("refused: Cannot trace: "), output);
        assertTrue(output.contains("has no room for a file of"), output);
        assertFalse(output.contains("\n"), "nothing is left behind: " + output);
    }

    @Test
    void readOnlySharedMemoryIsARefusal() throws Exception {
        String output = openOnASmallTmpfs("ro");
        assertTrue(output.contains("Read-only file system"), output);
    }

    @Test
    void noPermissionIsARefusal() throws Exception {
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        String java = JAVA + " -cp '" + CLASSES + "' org.whylag.trace.Child open";
        boolean root = Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0);
        assumeTrue(root, "becomes another user");
        Path open = Files.createDirectory(folder.resolve("of-root"));
        Process process =
                start(
                        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c",
                        "WHYLAG_TRACE_DIR=" + open + " " + java + "; WHYLAG_TRACE_DIR=" + open + "/mine " + java);
        String output = outputOf(process);
        assumeTrue(!output.contains("Could not find or load"), "classes are not readable by others");
        assertTrue(output.contains("belongs to user 0, not to 65534"), output);
        assertTrue(output.contains("no permission to write"), output);
    }

    @Test
    void virtualThreadIsRefusedAndItsMarkKept() throws Exception {
        String output =
                outputOf(
                        start(java21(), "-cp", CLASSES, "org.whylag.trace.Child", "virtual"));
        assertEquals(
                List.of(
                        "refused: Cannot trace a virtual thread: it has no thread of the kernel to itself. Run the business logic on a platform thread.",
                        "dropped 1",
                        "thread -1"),
                output.lines().toList());
    }

    private static String java21() throws IOException {
        List<Path> homes = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"))));
        Path installed = Path.of("/usr/lib/jvm");
        if (Files.isDirectory(installed)) {
            try (Stream<Path> found = Files.list(installed)) {
                homes.addAll(found.toList());
            }
        }
        for (Path home : homes) {
            Path release = home.resolve("release");
            if (Files.exists(release)
                    && Files.exists(home.resolve("bin/java"))
                    && Files.readString(release).matches("(?s).*JAVA_VERSION=\"(2[1-9]|[3-9]\\d).*")) {
                return home.resolve("bin/java").toString();
            }
        }
        assumeTrue(false, "no Java 21 or later in /usr/lib/jvm");
        throw new AssertionError();
    }

    /** After a change of the format: GOLDEN=write mvn -pl tracer test. */
    @Test
    void theGoldenFileIsWhatThisWriterMakes() throws Exception {
        Path golden = Path.of("../../crates/trace/golden/java-1.0.trace.gz");
        Path made = folder.resolve("made");
        String output =
                outputOf(start(JAVA, "-cp", CLASSES, "org.whylag.trace.Child", "golden", made.toString()));
        assertEquals("", output);
        if ("write".equals(System.getenv("GOLDEN"))) {
            Files.copy(made, golden, StandardCopyOption.REPLACE_EXISTING);
        }
        checkGolden(unpacked(made));
        checkGolden(unpacked(golden));
    }

    private static TraceBytes unpacked(Path packed) throws IOException {
        try (InputStream in = new GZIPInputStream(Files.newInputStream(packed))) {
            return new TraceBytes(in.readAllBytes());
        }
    }

    private static void checkGolden(TraceBytes file) {
        assertEquals("order", file.name(file.u32(file.flowAt(0) + 4)));
        assertEquals("quote", file.name(file.u32(file.flowAt(1) + 4)));
        assertEquals(6, file.begun(0));
        assertEquals(1, file.u64(file.flowAt(1) + 200));
        assertEquals(1, file.u64(file.flowAt(1) + 208));
        assertEquals(6, file.u64(file.threadAt(0) + 32));
        assertEquals(1, file.u64(file.threadAt(0) + 40));
        assertEquals(3, file.record(5, 0, 0).id());
        assertEquals("trade-report", file.record(5, 0, 0).publishName(1));
        assertEquals(15, file.histogram(0, 3).count(), "three of each order that ended");
        assertEquals(8, file.u64(file.threadAt(0) + 72), "8 is in logic");
        assertEquals(1, file.u32(file.threadAt(0) + 84));
    }
}
