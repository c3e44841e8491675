//! What travels with a message: its times so far, in the program's own memory.

use super::flow::{Flow, Publish};
use super::thread;
use crate::clock;
use crate::layout::{self, Mark, POINTS, PUBLISHES, THRESHOLD};

/// An infrastructure point of a flow, by its place in [`infra`](crate::FlowBuilder::infra).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point(u32);

impl Point {
    /// Counted from 0.
    pub const fn new(index: u32) -> Point {
        Point(index)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Idle,
    Begun,
    InLogic,
}

/// The times of one message. Made once, next to the message (in its slot of a ring, say), and begun
/// again for each message that uses the place.
///
/// Two threads use it, one after the other: what the first writes lies together, and what only the
/// second does lies in other cache lines.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Trace {
    /// None before the first message, and if tracing is off.
    entry: Option<&'static layout::Flow>,
    pub(crate) id: u64,
    pub(crate) t0: u64,
    declared_threshold: u64,
    /// Id of the flow.
    pub(crate) flow: u32,
    /// Points that may be marked: none unless the message has begun.
    pub(crate) points: u32,
    pub(crate) generation: u32,
    pub(crate) state: State,
    marks: [Mark; POINTS],
    pub(crate) logic_start: u64,
    /// The last time taken by the logic.
    pub(crate) last: u64,
    pub(crate) longest_gap: u64,
    pub(crate) depth: u32,
    pub(crate) publishes: u32,
    /// Those that have a cell: when, and what.
    pub(crate) published: [(u64, Publish); PUBLISHES],
}

impl Trace {
    /// A trace that no message has used yet.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// A message was received at `received`, by [`now`](crate::now) or the stamp of the kernel or
    /// network card in the same clock. The time that it waited since then counts.
    ///
    /// If the message before was not ended, that one counts as abandoned.
    #[inline]
    pub fn begin(&mut self, flow: &Flow, id: u64, received: u64) {
        if self.state != State::Idle {
            self.abandon();
        }
        let Some(flow) = &flow.0 else {
            self.entry = None;
            return;
        };
        flow.count_begun();
        self.entry = Some(flow.entry);
        self.state = State::Begun;
        self.generation = flow.generation;
        self.flow = flow.id;
        self.points = flow.points;
        self.declared_threshold = flow.threshold;
        self.id = id;
        self.t0 = received;
        for mark in self.marks() {
            mark.time.store_relaxed(0);
        }
    }

    #[cold]
    fn abandon(&mut self) {
        if let Some(entry) = self.entry {
            entry.abandoned.add_shared(1);
        }
        self.state = State::Idle;
        self.points = 0;
    }

    /// The message has reached a point. Any thread may say so, and several at once if their points
    /// differ. The last of two marks of one point holds.
    #[inline]
    pub fn mark(&self, point: Point) {
        // Off, not begun, and a point that was never declared: one comparison.
        if let Some(mark) = self.marks().get(point.0 as usize) {
            mark.what.store_relaxed(thread::lane_here());
            mark.time.store_release(clock::now());
        } else if self.state != State::Idle {
            self.undeclared();
        }
    }

    #[cold]
    fn undeclared(&self) {
        if let Some(entry) = self.entry {
            // Not the file's header, which this trace does not know: the flow is the one to blame.
            entry.undeclared.add_shared(1);
        }
    }

    /// The points of the flow.
    #[inline(always)]
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks[..self.points.min(POINTS as u32) as usize]
    }

    /// The publishes that have a cell.
    #[inline(always)]
    pub(crate) fn published(&self) -> &[(u64, Publish)] {
        &self.published[..self.publishes.min(PUBLISHES as u32) as usize]
    }

    /// From how many nanoseconds on the message is slow, as an outside process may have changed it.
    #[inline(always)]
    pub(crate) fn threshold(&self) -> u64 {
        match self.entry.map_or(0, |entry| entry.threshold.load_relaxed()) {
            0 => self.declared_threshold,
            asked => asked.clamp(*THRESHOLD.start(), *THRESHOLD.end()),
        }
    }
}
