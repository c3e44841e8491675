//! Rare things worth keeping one by one.

use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A watched process called exec.
    Exec,
    /// A watched thread or process was created; `value` is its tid.
    Fork,
    /// A watched process ended; `value` is its exit code as wait() reports it.
    Exit,
    /// A signal was delivered; `value` is its number.
    Signal,
    /// Direct reclaim ended; `value` is its duration in ns.
    DirectReclaim,
    /// Compaction ended; `value` is its duration in ns.
    Compaction,
    /// balance_dirty_pages paused the writer; `value` is the pause asked for, in ns.
    DirtyThrottle,
    /// The ext4 journal committed; `value` is the time running + flushing + logging, in ns.
    JournalCommit,
    /// A block I/O request beyond the threshold; `value` is its duration in ns.
    BlockIo,
    /// A thread held a send back: it did nothing but wait (sched_yield, nanosleep) and then sent;
    /// `value` is the time from the first of these calls to the send, in ns, at least the run's
    /// threshold; `detail` the call and how often it was made.
    HeldSend,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub time_ns: u64,
    /// What.
    pub kind: EventKind,
    /// Thread it happened to, 0 for the host.
    pub tid: u32,
    /// Its process, 0 for the host.
    pub tgid: u32,
    /// As the kind says.
    pub value: u64,
    /// More in words: the program executed, the device.
    pub detail: String,
}

impl Event {
    /// When it was over: a held send is noted with its begin and its length, any other event with one
    /// moment.
    pub fn end_ns(&self) -> u64 {
        match self.kind {
            EventKind::HeldSend => self.time_ns.saturating_add(self.value),
            _ => self.time_ns,
        }
    }
}
