package org.whylag.trace;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/** A kind of message, with its points and its threshold. */
public final class Flow {
    private static final VarHandle FIRST;

    static {
        try {
            FIRST = MethodHandles.lookup().findVarHandle(Flow.class, "first", Thread.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    final Tracer tracer;
    final int id;
    final int points;
    private final Memory memory;
    private final int at;
    /** Null when off. */
    private final Words words;
    private final long declaredThreshold;
    /** By number: the id of the name, and in the upper half the number. */
    private final long[] numberedNames = new long[FlowDescriptor.MAX_PUBLISHES];
    private int publishes;
    /** Plain: a message that begins while the tracer is being closed may still be written. */
    private boolean live;
    /** The thread that began the first message. */
    private Thread first;

    Flow(Tracer tracer, Memory memory, int at, int id, int points, long threshold) {
        this.tracer = tracer;
        this.memory = memory;
        this.at = at;
        this.words = memory == null ? null : memory.words(at, FlowDescriptor.LENGTH);
        this.id = id;
        this.points = points;
        this.declaredThreshold = threshold;
        this.live = memory != null;
    }

    /**
     * The number of a publish, for {@link Logic#published}; the name is added if it is new.
     *
     * @throws TraceException if the flow has 16 names, or the tracer no room for this one
     */
    public int publish(String name) {
        Tracer.checkedName(name);
        if (memory == null) {
            return 0;
        }
        synchronized (tracer) {
            int nameId = tracer.nameId(name);
            for (int number = 0; number < publishes; number++) {
                if ((int) numberedNames[number] == nameId) {
                    return number;
                }
            }
            if (publishes == FlowDescriptor.MAX_PUBLISHES) {
                tracer.countDroppedName();
                throw new TraceException(
                        "Cannot add publish '%s': a flow has at most %d."
                                .formatted(name, FlowDescriptor.MAX_PUBLISHES));
            }
            numberedNames[publishes] = nameId | (long) publishes << Integer.SIZE;
            memory.putIntRelease(at + FlowDescriptor.PUBLISH_NAMES + 4 * publishes, nameId);
            return publishes++;
        }
    }

    boolean isLive() {
        return live;
    }

    void close() {
        live = false;
    }

    /** One thread counts without a locked instruction, which costs as much as the rest of begin. */
    void countBegun() {
        if (first == Thread.currentThread() || becomesFirst()) {
            words.add(0, FlowDescriptor.BEGUN_BY_FIRST, 1);
        } else {
            memory.addLong(at + FlowDescriptor.BEGUN, 1);
        }
    }

    private boolean becomesFirst() {
        return first == null && FIRST.compareAndSet(this, null, Thread.currentThread());
    }

    void countAbandoned() {
        memory.addLong(at + FlowDescriptor.ABANDONED, 1);
    }

    /** A mark of a point that the flow does not have. */
    void countUndeclared() {
        memory.addLong(at + FlowDescriptor.UNDECLARED, 1);
    }

    /** The id of the name, below its number; 0 for a number that {@link #publish} did not give. */
    long publishName(int number) {
        return number >= 0 && number < numberedNames.length ? numberedNames[number] : 0;
    }

    static int publishNumber(long publishName) {
        return (int) (publishName >>> Integer.SIZE);
    }

    /** A reader may have written anything; 0 means what was declared. */
    long threshold() {
        long threshold = memory.getLongOpaque(at + FlowDescriptor.THRESHOLD);
        return threshold == 0 ? declaredThreshold : FlowBuilder.clamp(threshold);
    }
}
