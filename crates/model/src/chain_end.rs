//! What stands at the end of a chain of waits.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{duration, share_of};

/// What the one was doing that a thread waited for, or the one that that one waited for, and so on
/// to one that did not wait for another recorded thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ChainEnd {
    /// It ran on a CPU.
    Cpu,
    /// It was ready to run and had no CPU.
    RunQueue,
    /// Its cgroup was throttled.
    Throttled,
    /// It waited for a disk, or was held back because of dirty pages.
    Disk,
    /// It waited for a page from disk.
    Fault,
    /// It slept in the kernel for something that no recorded thread gave up.
    Kernel,
    /// It was stopped: by a signal, a tracer, the freezer.
    Stopped,
    /// It slept for as long as it had chosen.
    Timer,
    /// It waited for another thread (on a futex) until a timeout: a look at what that one has, or a sleep
    /// of a runtime that has no other way (`Thread.sleep` of Java).
    Timeout,
    /// Until an interrupt came: from another host, a terminal, a device.
    Outside,
    /// A thread that was not recorded ended the wait.
    Unwatched,
    /// It waited for an answer that it had asked another process for, on a socket, and that one was not
    /// recorded.
    Peer,
    /// Who was asked had nothing to do for it until somebody else asked: a queue without a job.
    Idle,
    /// Further back than what was remembered of that thread.
    Unknown,
}

impl ChainEnd {
    /// All, in the order of the enum.
    pub const ALL: [ChainEnd; 14] = [
        ChainEnd::Cpu,
        ChainEnd::RunQueue,
        ChainEnd::Throttled,
        ChainEnd::Disk,
        ChainEnd::Fault,
        ChainEnd::Kernel,
        ChainEnd::Stopped,
        ChainEnd::Timer,
        ChainEnd::Timeout,
        ChainEnd::Outside,
        ChainEnd::Unwatched,
        ChainEnd::Peer,
        ChainEnd::Idle,
        ChainEnd::Unknown,
    ];

    /// True if a recorded thread was at the end, and what it did is known.
    pub fn is_recorded(self) -> bool {
        !matches!(self, ChainEnd::Outside | ChainEnd::Unwatched | ChainEnd::Unknown)
    }
}

/// `it ...`: what it did meanwhile.
impl fmt::Display for ChainEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChainEnd::Cpu => "ran on a CPU",
            ChainEnd::RunQueue => "waited for a CPU",
            ChainEnd::Throttled => "was throttled by its cgroup",
            ChainEnd::Disk => "waited for a disk",
            ChainEnd::Fault => "waited for a page from disk",
            ChainEnd::Kernel => "waited in the kernel",
            ChainEnd::Stopped => "was stopped",
            ChainEnd::Timer => "slept by a timer of its own",
            ChainEnd::Timeout => "waited until a timeout",
            ChainEnd::Outside => "waited for something outside of this host",
            ChainEnd::Unwatched => "waited for a thread that was not recorded",
            ChainEnd::Peer => "waited for the answer of a process that was not recorded",
            ChainEnd::Idle => "had nothing to do until somebody else asked it for something",
            ChainEnd::Unknown => "did something that was not seen",
        })
    }
}

/// Ends worth naming, the largest.
const ENDS_SHOWN: usize = 3;
/// The part of the waiting from which on an end is worth naming: one of so many.
const WORTH: u64 = 20;

/// `ran on a CPU for 81 % (2.30 s), slept by a timer of its own for 12 % (340 ms)`; empty if there
/// is nothing.
pub fn in_words(ends: &BTreeMap<ChainEnd, u64>) -> String {
    let total = ends.values().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    let mut named: Vec<_> =
        ends.iter().filter(|(_, ns)| **ns > 0 && **ns >= total / WORTH).collect();
    named.sort_by_key(|(_, ns)| Reverse(**ns));
    let words: Vec<_> = named
        .into_iter()
        .take(ENDS_SHOWN)
        .map(|(end, ns)| format!("{end} for {} ({})", share_of(*ns, total), duration(*ns)))
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_named_and_the_rest_is_not() {
        let ends = [(ChainEnd::Cpu, 700), (ChainEnd::Timer, 290), (ChainEnd::RunQueue, 10)];
        assert_eq!(
            in_words(&ends.into()),
            "ran on a CPU for 70.0 % (700 ns), slept by a timer of its own for 29.0 % (290 ns)"
        );
        assert_eq!(in_words(&BTreeMap::new()), "");
    }
}
