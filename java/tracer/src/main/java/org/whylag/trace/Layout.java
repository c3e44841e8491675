package org.whylag.trace;

/** Where the sections of a file lie, for the room that was asked for. */
final class Layout {
    final int names;
    final int threads;
    final int recentPerThread;
    final int slowPerThread;
    final int blocks;

    final int namesAt;
    final int flowsAt;
    final int threadsAt;
    final int recentAt;
    final int slowAt;
    final int blocksAt;
    final int length;

    Layout(int names, int threads, int recentPerThread, int slowPerThread, int blocks) {
        this.names = names;
        this.threads = threads;
        this.recentPerThread = recentPerThread;
        this.slowPerThread = slowPerThread;
        this.blocks = blocks;
        namesAt = HeaderDescriptor.LENGTH;
        flowsAt = namesAt + names * NameDescriptor.LENGTH;
        threadsAt = flowsAt + FlowDescriptor.MAX_FLOWS * FlowDescriptor.LENGTH;
        recentAt = threadsAt + threads * ThreadDescriptor.LENGTH;
        slowAt = recentAt + threads * recentPerThread * RecordDescriptor.LENGTH;
        blocksAt = slowAt + threads * slowPerThread * RecordDescriptor.LENGTH;
        length = blocksAt + blocks * HistogramDescriptor.LENGTH;
    }

    void describe(Memory memory) {
        memory.putInt(HeaderDescriptor.SECTIONS, 6);
        section(memory, SectionDescriptor.NAMES, NameDescriptor.LENGTH, names, namesAt);
        section(
                memory,
                SectionDescriptor.FLOWS,
                FlowDescriptor.LENGTH,
                FlowDescriptor.MAX_FLOWS,
                flowsAt);
        section(memory, SectionDescriptor.THREADS, ThreadDescriptor.LENGTH, threads, threadsAt);
        int record = RecordDescriptor.LENGTH;
        section(memory, SectionDescriptor.RECENT, record, threads * recentPerThread, recentAt);
        section(memory, SectionDescriptor.SLOW, record, threads * slowPerThread, slowAt);
        section(memory, SectionDescriptor.HISTOGRAMS, HistogramDescriptor.LENGTH, blocks, blocksAt);
    }

    private static void section(Memory memory, int kind, int entryLength, int entries, int offset) {
        // Kinds count from 1 and are kept in their own order.
        int at = HeaderDescriptor.TABLE + (kind - 1) * SectionDescriptor.LENGTH;
        memory.putInt(at + SectionDescriptor.KIND, kind);
        memory.putInt(at + SectionDescriptor.ENTRY_LENGTH, entryLength);
        memory.putLong(at + SectionDescriptor.ENTRIES, entries);
        memory.putLong(at + SectionDescriptor.OFFSET, offset);
        memory.putLong(at + SectionDescriptor.BYTES, (long) entryLength * entries);
    }
}
