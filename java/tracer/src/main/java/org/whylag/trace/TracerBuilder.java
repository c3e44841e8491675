package org.whylag.trace;

import java.nio.file.Path;

/** How much room the file has, and where it is. */
public final class TracerBuilder {
    private static final int MAX_LENGTH = 256 << 20;
    private static final int MAX_BLOCKS = 4096;
    private static final int MAX_NAMES = 4096;

    private Path folder;
    private int names = 256;
    private int threads = 32;
    private int recent = 128;
    private int slow = 128;
    private int histograms = 16;

    TracerBuilder() {}

    /** A folder of this user on a tmpfs, instead of WHYLAG_TRACE_DIR or /dev/shm/whylag-UID. */
    public TracerBuilder folder(Path folder) {
        this.folder = folder;
        return this;
    }

    /** Names of flows, points and publishes, of 64 bytes: 1 to 4,096, usually 256. */
    public TracerBuilder names(int names) {
        this.names = within("names", names, 1, MAX_NAMES);
        return this;
    }

    /** Threads that mark or run logic, over the life of the process: 1 to 256, usually 32. */
    public TracerBuilder threads(int threads) {
        this.threads = within("threads", threads, 1, ThreadDescriptor.MAX_THREADS);
        return this;
    }

    /** Last messages kept per thread, of 512 bytes: a power of two, usually 128. */
    public TracerBuilder recent(int records) {
        this.recent = powerOfTwo("recent", records);
        return this;
    }

    /** Last slow messages kept per thread, of 512 bytes: a power of two, usually 128. */
    public TracerBuilder slow(int records) {
        this.slow = powerOfTwo("slow", records);
        return this;
    }

    /** Blocks of histograms, of 233 KiB: one for each thread that ends messages of a flow. */
    public TracerBuilder histograms(int blocks) {
        this.histograms = within("histograms", blocks, 1, MAX_BLOCKS);
        return this;
    }

    /**
     * Opens the tracer.
     *
     * @throws TraceException as {@link Tracer#open()}
     */
    public Tracer open() {
        long length =
                (long) threads * (recent + slow) * RecordDescriptor.LENGTH
                        + (long) histograms * HistogramDescriptor.LENGTH;
        // The rest is below 1 MiB.
        if (length > MAX_LENGTH - (1 << 20)) {
            throw new TraceException(
                    "Cannot trace: the room asked for is %,d MiB; at most %,d are read."
                            .formatted(length >> 20, MAX_LENGTH >> 20));
        }
        return Tracer.open(folder, new Layout(names, threads, recent, slow, histograms));
    }

    private static int within(String what, int value, int least, int most) {
        if (value < least || value > most) {
            throw new TraceException("%s: %d is not in %d to %d.".formatted(what, value, least, most));
        }
        return value;
    }

    private static int powerOfTwo(String what, int value) {
        if (Integer.bitCount(within(what, value, 1, 1 << 16)) != 1) {
            throw new TraceException("%s: %d is not a power of two.".formatted(what, value));
        }
        return value;
    }
}
