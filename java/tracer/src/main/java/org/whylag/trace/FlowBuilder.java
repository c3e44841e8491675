package org.whylag.trace;

import java.util.List;

/** Describes a flow: its points, and when a message of it is slow. */
public final class FlowBuilder {
    private static final long LEAST = 1_000;
    private static final long MOST = 3_600_000_000_000L;

    private final Tracer tracer;
    private final String name;
    private List<String> points = List.of();
    private List<String> publishes = List.of();
    private long threshold = 1_000_000;

    FlowBuilder(Tracer tracer, String name) {
        this.tracer = tracer;
        this.name = Tracer.checkedName(name);
    }

    /** Points between receipt and business logic, at most 8; {@link Trace#mark} counts from 0. */
    public FlowBuilder infra(String... points) {
        this.points = checked("infrastructure points", points, FlowDescriptor.MAX_POINTS);
        return this;
    }

    /** Names of messages that the logic publishes, at most 16, as {@link Flow#publish} gives. */
    public FlowBuilder publishes(String... names) {
        this.publishes = checked("names of publishes", names, FlowDescriptor.MAX_PUBLISHES);
        return this;
    }

    /** A message that takes at least this long keeps its breakdown: 1 us to 1 h, usually 1 ms. */
    public FlowBuilder thresholdNanos(long nanos) {
        if (nanos < LEAST || nanos > MOST) {
            throw new TraceException(
                    "The threshold of flow '%s', %d ns, is not in 1 us to 1 h.".formatted(name, nanos));
        }
        this.threshold = nanos;
        return this;
    }

    /**
     * Adds the flow to the tracer.
     *
     * @throws TraceException if the tracer has 16 flows, one of this name, or no room for the names
     */
    public Flow build() {
        return tracer.add(name, points, publishes, threshold);
    }

    /** Unsigned: what is above the most stays there. */
    static long clamp(long threshold) {
        return threshold < 0 ? MOST : Math.max(LEAST, Math.min(MOST, threshold));
    }

    private List<String> checked(String what, String[] names, int most) {
        if (names.length > most) {
            if (!tracer.isOff()) {
                tracer.countDroppedName();
            }
            throw new TraceException(
                    "Flow '%s' has %d %s; at most %d fit.".formatted(name, names.length, what, most));
        }
        for (String each : names) {
            Tracer.checkedName(each);
        }
        return List.of(names);
    }
}
