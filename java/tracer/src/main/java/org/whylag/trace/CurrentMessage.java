package org.whylag.trace;

import java.lang.invoke.VarHandle;

/** The message that a thread is working on, so that one that is stuck can be seen. */
final class CurrentMessage {
    private final Memory memory;
    private final int entry;
    private long sequence;

    CurrentMessage(Memory memory, int entry) {
        this.memory = memory;
        this.entry = entry;
    }

    void started(Trace trace) {
        beginChange();
        memory.putLong(entry + ThreadDescriptor.MESSAGE_ID, trace.id);
        memory.putLong(
                entry + ThreadDescriptor.FLOW_AND_STATE, trace.flow.id | ThreadDescriptor.IN_LOGIC);
        memory.putLong(entry + ThreadDescriptor.T0, trace.t0);
        memory.putLong(entry + ThreadDescriptor.LOGIC_START, trace.logicStart);
        memory.putLong(entry + ThreadDescriptor.LAST_MARK, trace.logicStart);
        memory.putInt(entry + ThreadDescriptor.LAST_NAME, 0);
        endChange();
    }

    void marked(long time, int name) {
        beginChange();
        memory.putLong(entry + ThreadDescriptor.LAST_MARK, time);
        memory.putInt(entry + ThreadDescriptor.LAST_NAME, name);
        endChange();
    }

    void ended() {
        beginChange();
        memory.putLong(entry + ThreadDescriptor.FLOW_AND_STATE, 0);
        endChange();
    }

    private void beginChange() {
        memory.putLong(entry + ThreadDescriptor.SEQUENCE, ++sequence);
        VarHandle.releaseFence();
    }

    private void endChange() {
        memory.putLongRelease(entry + ThreadDescriptor.SEQUENCE, ++sequence);
    }
}
