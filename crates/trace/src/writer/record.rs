//! Writes a message that has ended into a ring.

use std::sync::atomic::{Ordering, fence};

use super::trace::Trace;
use crate::layout::{IS_SLOW, Record};

/// A message that has ended.
pub(crate) struct Done<'a, F> {
    pub trace: &'a Trace,
    /// Index of the thread that ran the logic.
    pub thread: u32,
    pub end: u64,
    pub is_slow: bool,
    /// Index of the thread of a mark.
    pub index_of: F,
}

/// Writes record `k` of a ring into its slot. A reader that copies it meanwhile finds another
/// sequence at the head, before or after its copy.
#[inline(always)]
pub(crate) fn write(slot: &Record, k: u64, done: &Done<impl Fn(u32) -> u32>) {
    let trace = done.trace;
    slot.head.store_relaxed(0);
    fence(Ordering::Release);
    slot.id.store_relaxed(trace.id);
    slot.flow.store_relaxed(trace.flow);
    slot.flags.store_relaxed(if done.is_slow { IS_SLOW } else { 0 });
    slot.t0.store_relaxed(trace.t0);
    slot.logic_start.store_relaxed(trace.logic_start);
    slot.end.store_relaxed(done.end);
    slot.depth.store_relaxed(trace.depth);
    slot.thread.store_relaxed(done.thread);
    slot.publishes.store_relaxed(trace.publishes);
    slot.longest_gap.store_relaxed(trace.longest_gap);
    // Cells beyond these keep what they hold, and a reader knows it.
    for (cell, mark) in slot.point.iter().zip(trace.marks()) {
        cell.time.store_relaxed(mark.time.load_acquire());
        cell.what.store_relaxed((done.index_of)(mark.what.load_relaxed()));
    }
    for (cell, (time, publish)) in slot.publish.iter().zip(trace.published()) {
        cell.time.store_relaxed(*time);
        cell.what.store_relaxed(publish.name);
    }
    fence(Ordering::Release);
    slot.tail.store_relaxed(k + 1);
    slot.head.store_relaxed(k + 1);
}
