package org.whylag.trace;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/** The tracer of this process. Opened once at start; everything else comes from it. */
public final class Tracer implements AutoCloseable {
    private static final AtomicBoolean OPEN = new AtomicBoolean();

    private final TraceFile file;
    private final Memory memory;
    private final Layout layout;
    private final Thread closeAtExit = new Thread(this::end, "whylag-close");
    private final AtomicBoolean closed = new AtomicBoolean();
    private final Map<String, Integer> names = new HashMap<>();
    private final List<Flow> flows = new ArrayList<>();
    private final Set<String> flowNames = new HashSet<>();
    private final ThreadLocal<ThreadEntry> here;

    private Tracer(TraceFile file, Layout layout) {
        this.file = file;
        this.memory = file == null ? null : file.memory;
        this.layout = layout;
        this.here = ThreadLocal.withInitial(() -> ThreadEntry.claim(memory, layout));
    }

    /**
     * A tracer with the usual room (8 MiB). WHYLAG_TRACE=off in the environment gives one that is
     * {@linkplain #off() off}; WHYLAG_TRACE_DIR names another folder.
     *
     * @throws TraceException if there is a tracer in this process, or no place for its file
     */
    public static Tracer open() {
        return with().open();
    }

    /** To ask for other room than the usual. */
    public static TracerBuilder with() {
        return new TracerBuilder();
    }

    /** A tracer without a file: every call returns at once. */
    public static Tracer off() {
        return new Tracer(null, null);
    }

    static Tracer open(Path folder, Layout layout) {
        if ("off".equals(System.getenv("WHYLAG_TRACE"))) {
            return off();
        }
        if (!OPEN.compareAndSet(false, true)) {
            throw TraceFile.second();
        }
        try {
            Identity identity = Identity.ofThisProcess();
            Path place = folder != null ? folder : TraceFile.usualFolder(identity);
            Tracer tracer = new Tracer(TraceFile.create(place, identity, layout), layout);
            Runtime.getRuntime().addShutdownHook(tracer.closeAtExit);
            return tracer;
        } catch (RuntimeException e) {
            OPEN.set(false);
            throw e;
        }
    }

    public boolean isOff() {
        return memory == null;
    }

    /** The file that a reader looks at, or null if the tracer is off. */
    public Path path() {
        return isOff() ? null : file.path();
    }

    /** Describes a kind of message. */
    public FlowBuilder flow(String name) {
        return new FlowBuilder(this, name);
    }

    /**
     * The current thread's own handle, for the thread that runs the business logic. It belongs to
     * that thread: messages that another one hands to it are dropped and counted.
     *
     * @throws TraceException if the thread is virtual, or the table of threads is full
     */
    public Logic logic() {
        if (isOff()) {
            return Logic.off();
        }
        ThreadEntry entry = here.get();
        if (entry.refusal != null) {
            throw entry.refusal;
        }
        return entry.logic;
    }

    /**
     * Makes the current thread known, so that its first mark need not; reads /proc/thread-self.
     *
     * @throws TraceException as {@link #logic()}
     */
    public void register() {
        logic();
    }

    /** A normal end: the file is marked closed and removed. Happens by itself when the JVM exits. */
    @Override
    public void close() {
        if (isOff()) {
            return;
        }
        try {
            Runtime.getRuntime().removeShutdownHook(closeAtExit);
        } catch (IllegalStateException e) {
            // The JVM is exiting, and the hook runs anyway.
        }
        end();
    }

    private void end() {
        if (closed.compareAndSet(false, true)) {
            synchronized (this) {
                flows.forEach(Flow::close);
            }
            file.close();
            OPEN.set(false);
        }
    }

    /** Where the current thread is in the table. A thread that found no place is counted once. */
    int threadIndex() {
        return here.get().index;
    }

    void countDroppedThread() {
        memory.addLong(HeaderDescriptor.DROPPED_THREADS, 1);
    }

    void countDroppedName() {
        memory.addLong(HeaderDescriptor.DROPPED_NAMES, 1);
    }

    synchronized Flow add(
            String name, List<String> points, List<String> publishes, long threshold) {
        if (isOff()) {
            return new Flow(this, null, 0, 0, points.size(), threshold);
        }
        if (!flowNames.add(name)) {
            throw new TraceException("There is a flow '%s' already: share it.".formatted(name));
        }
        int index = flows.size();
        if (index == FlowDescriptor.MAX_FLOWS) {
            countDroppedName();
            throw new TraceException(
                    "Cannot add flow '%s': a tracer has at most %d."
                            .formatted(name, FlowDescriptor.MAX_FLOWS));
        }
        int at = layout.flowsAt + index * FlowDescriptor.LENGTH;
        memory.putInt(at + FlowDescriptor.NAME, nameId(name));
        memory.putInt(at + FlowDescriptor.POINTS, points.size());
        memory.putInt(at + FlowDescriptor.PUBLISHES, FlowDescriptor.MAX_PUBLISHES);
        for (int i = 0; i < points.size(); i++) {
            memory.putInt(at + FlowDescriptor.POINT_NAMES + 4 * i, nameId(points.get(i)));
        }
        memory.putLong(at + FlowDescriptor.THRESHOLD, threshold);
        Flow flow = new Flow(this, memory, at, index + 1, points.size(), threshold);
        publishes.forEach(flow::publish);
        memory.putIntRelease(at + FlowDescriptor.ID, index + 1);
        flows.add(flow);
        return flow;
    }

    /** The id of a name, which is added if it is new. */
    synchronized int nameId(String text) {
        Integer known = names.get(text);
        if (known != null) {
            return known;
        }
        int index = names.size();
        if (index == layout.names) {
            countDroppedName();
            throw new TraceException(
                    "Cannot add name '%s': all %d places are taken. Ask for more with Tracer.with().names(n)."
                            .formatted(text, layout.names));
        }
        byte[] bytes = checkedName(text).getBytes(StandardCharsets.UTF_8);
        int at = layout.namesAt + index * NameDescriptor.LENGTH;
        memory.putInt(at + NameDescriptor.TEXT_LENGTH, bytes.length);
        memory.putBytes(at + NameDescriptor.TEXT, bytes);
        memory.putIntRelease(at + NameDescriptor.ID, index + 1);
        names.put(text, index + 1);
        return index + 1;
    }

    static String checkedName(String text) {
        if (text.isEmpty()) {
            throw new TraceException("A name is empty.");
        }
        if (text.codePoints().anyMatch(c -> Character.isISOControl(c) || isHalfPair(c))) {
            throw new TraceException(
                    "Name '%s' has control characters or half a surrogate pair."
                            .formatted(text.replaceAll("\\p{Cntrl}", "?")));
        }
        int length = text.getBytes(StandardCharsets.UTF_8).length;
        if (length > NameDescriptor.MAX_TEXT) {
            throw new TraceException(
                    "Name '%s' has %d bytes of UTF-8; at most %d fit."
                            .formatted(text, length, NameDescriptor.MAX_TEXT));
        }
        return text;
    }

    private static boolean isHalfPair(int codePoint) {
        return codePoint >= Character.MIN_SURROGATE && codePoint <= Character.MAX_SURROGATE;
    }
}
