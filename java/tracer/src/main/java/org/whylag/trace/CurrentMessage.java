package org.whylag.trace;

import java.lang.invoke.VarHandle;

/** The message that a thread is working on, so that one that is stuck can be seen. */
final class CurrentMessage {
    private final Words entry;
    private long sequence;

    CurrentMessage(Words entry) {
        this.entry = entry;
    }

    void started(Trace trace) {
        beginChange();
        entry.put(0, ThreadDescriptor.MESSAGE_ID, trace.id);
        entry.put(0, ThreadDescriptor.FLOW_AND_STATE, trace.flow.id | ThreadDescriptor.IN_LOGIC);
        entry.put(0, ThreadDescriptor.T0, trace.t0);
        entry.put(0, ThreadDescriptor.LOGIC_START, trace.logicStart);
        entry.put(0, ThreadDescriptor.LAST_MARK, trace.logicStart);
        entry.put(0, ThreadDescriptor.LAST_NAME, 0);
        endChange();
    }

    void marked(long time, int name) {
        beginChange();
        entry.put(0, ThreadDescriptor.LAST_MARK, time);
        entry.put(0, ThreadDescriptor.LAST_NAME, name);
        endChange();
    }

    void ended() {
        beginChange();
        entry.put(0, ThreadDescriptor.FLOW_AND_STATE, 0);
        endChange();
    }

    private void beginChange() {
        entry.put(0, ThreadDescriptor.SEQUENCE, ++sequence);
        VarHandle.releaseFence();
    }

    private void endChange() {
        entry.putRelease(0, ThreadDescriptor.SEQUENCE, ++sequence);
    }
}
