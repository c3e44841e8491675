package org.whylag.trace;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** Makes, maps and removes the file. All system calls of the tracer's set-up are here. */
final class TraceFile {
    private static final int WRITABLE_BY_OTHERS = 022;
    private static final int CHUNK = 1 << 20;

    final Memory memory;
    private final Path path;

    private TraceFile(Memory memory, Path path) {
        this.memory = memory;
        this.path = path;
    }

    static Path usualFolder(Identity identity) {
        String named = System.getenv("WHYLAG_TRACE_DIR");
        return named != null ? Path.of(named) : Path.of("/dev/shm/whylag-" + identity.uid());
    }

    static TraceFile create(Path folder, Identity identity, Layout layout) {
        String name = identity.pid() + "-" + identity.start();
        Path file = folder.resolve(name + ".trace");
        Path unfinished = folder.resolve("." + name + ".new");
        try {
            makeFolder(folder);
            checkFolder(folder, identity);
            refuseSecond(file);
            // One of this name can only be what an interrupted set-up of this process left.
            Files.deleteIfExists(unfinished);
            try {
                Memory memory = write(unfinished, layout.length);
                describe(memory, identity, layout);
                // Whoever sees the name sees a whole file.
                Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
                return new TraceFile(memory, file);
            } finally {
                Files.deleteIfExists(unfinished);
            }
        } catch (IOException e) {
            throw refusal(folder, layout, e);
        }
    }

    /** After a normal end there is nothing to harvest. */
    void close() {
        memory.putIntRelease(HeaderDescriptor.STATE, HeaderDescriptor.STATE_CLOSED);
        if (System.getenv("WHYLAG_TRACE_KEEP") == null) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                // The reader takes a file whose process is gone, closed or not.
            }
        }
    }

    Path path() {
        return path;
    }

    private static void makeFolder(Path folder) throws IOException {
        var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
        try {
            Files.createDirectory(folder, owner);
        } catch (FileAlreadyExistsException e) {
            // Another process of this user, or an earlier run; whose it is, is checked next.
        }
    }

    private static void checkFolder(Path folder, Identity identity) throws IOException {
        if (!Files.isDirectory(folder, NOFOLLOW_LINKS)) {
            throw new TraceException("Cannot trace: " + folder + " is not a folder");
        }
        var facts = Files.readAttributes(folder, "unix:uid,mode", NOFOLLOW_LINKS);
        long owner = ((Integer) facts.get("uid")).longValue();
        if (owner != identity.uid()) {
            throw new TraceException(
                    "Cannot trace: %s belongs to user %d, not to %d. Have it removed, or name another folder by WHYLAG_TRACE_DIR."
                            .formatted(folder, owner, identity.uid()));
        }
        if (((Integer) facts.get("mode") & WRITABLE_BY_OTHERS) != 0) {
            throw new TraceException(
                    "Cannot trace: others may write into %s. chmod 700 it.".formatted(folder));
        }
        String type = Files.getFileStore(folder).type();
        if (!type.equals("tmpfs")) {
            throw new TraceException(
                    "Cannot trace: %s is on %s, not on tmpfs: a store to it could wait for a disk. Name a folder on a tmpfs by WHYLAG_TRACE_DIR."
                            .formatted(folder, type));
        }
    }

    /** A file of this process that is mapped is another tracer's; else it is from before an exec. */
    private static void refuseSecond(Path file) throws IOException {
        if (!Files.exists(file, NOFOLLOW_LINKS)) {
            return;
        }
        String inode = " " + Files.getAttribute(file, "unix:ino", NOFOLLOW_LINKS) + " ";
        String end = "/" + file.getFileName();
        for (String mapping : Files.readAllLines(Path.of("/proc/self/maps"))) {
            if (mapping.endsWith(end) && mapping.contains(inode)) {
                throw second();
            }
        }
    }

    static TraceException second() {
        return new TraceException(
                "Cannot trace: this process has a tracer. Share it, or close it first.");
    }

    /** Writes every byte: a page that is missing later would be a SIGBUS in the hot path. */
    private static Memory write(Path unfinished, int length) throws IOException {
        var options = Set.of(CREATE_NEW, READ, WRITE, NOFOLLOW_LINKS);
        var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
        try (FileChannel channel = FileChannel.open(unfinished, options, owner)) {
            ByteBuffer zeros = ByteBuffer.allocateDirect(CHUNK);
            for (int written = 0; written < length; ) {
                zeros.position(0).limit(Math.min(CHUNK, length - written));
                written += channel.write(zeros);
            }
            MappedByteBuffer mapping = channel.map(FileChannel.MapMode.READ_WRITE, 0, length);
            // Page faults happen now, not in the first messages.
            mapping.load();
            return new Memory(mapping);
        }
    }

    private static void describe(Memory memory, Identity identity, Layout layout) {
        memory.putInt(
                HeaderDescriptor.MAJOR,
                HeaderDescriptor.MAJOR_VERSION | HeaderDescriptor.MINOR_VERSION << 16);
        memory.putInt(HeaderDescriptor.BYTE_ORDER, HeaderDescriptor.BYTE_ORDER_WORD);
        memory.putLong(HeaderDescriptor.FILE_LENGTH, layout.length);
        memory.putInt(HeaderDescriptor.PID, identity.pid());
        memory.putInt(HeaderDescriptor.LANGUAGE, HeaderDescriptor.LANGUAGE_JAVA);
        memory.putLong(HeaderDescriptor.START, identity.start());
        memory.putLong(HeaderDescriptor.PID_NAMESPACE, identity.pidNamespace());
        memory.putBytes(
                HeaderDescriptor.BOOT_ID, identity.bootId().getBytes(StandardCharsets.US_ASCII));
        memory.putInt(HeaderDescriptor.STATE, HeaderDescriptor.STATE_RUNNING);
        memory.putLong(
                HeaderDescriptor.CREATED_UNIX, System.currentTimeMillis() * 1_000_000);
        memory.putLong(HeaderDescriptor.CREATED_MONOTONIC, System.nanoTime());
        memory.putInt(HeaderDescriptor.CLOCK, HeaderDescriptor.CLOCK_IS_MONOTONIC);
        layout.describe(memory);
        memory.putLongRelease(
                HeaderDescriptor.MAGIC, ByteBuffer.wrap(HeaderDescriptor.MAGIC_BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .getLong());
    }

    private static TraceException refusal(Path folder, Layout layout, IOException e) {
        String why = "Cannot trace: " + e;
        if (e instanceof NoSuchFileException) {
            why = "Cannot trace: there is no folder in which to make %s.".formatted(folder);
        } else if (e instanceof AccessDeniedException) {
            why =
                    "Cannot trace: no permission to write into %s. Name a folder of this user by WHYLAG_TRACE_DIR."
                            .formatted(folder);
        } else if (e.getMessage() != null && e.getMessage().contains("No space left")) {
            why =
                    "Cannot trace: %s has no room for a file of %,d KiB. Make it larger (docker run --shm-size=...), or ask for less with Tracer.with()."
                            .formatted(folder, layout.length / 1024);
        }
        return new TraceException(why, e);
    }
}
