//! Threads that were stopped, and what they were doing when it happened.
//!
//! Who stops a process stops all of its threads. One that waited for work then lost nothing by it:
//! the kernel interrupts the wait to make the stop, and the thread goes back to waiting after it.
//! Such a stop is known by a wait for work of the same thread that ended just before.

use std::collections::HashMap;

use model::{Account, Blocked, Outlier, OutlierKind, Run, part_of};

use crate::case::lock_word::LockWord;
use crate::case::lost::{Class, class};

/// Stopped by a signal, frozen, or held by a tracer.
pub const STOPPED: Account = Account::Blocked(Blocked::Stopped);
/// A stop that begins so soon after a wait has interrupted it; in between, the thread had to get a
/// CPU.
const INTERRUPTED_NS: u64 = 1_000_000;

/// Stops that were kept whole.
#[derive(Debug, Default)]
pub struct Stops {
    /// How many.
    pub number: u64,
    /// Their time.
    pub ns: u64,
    /// Of these, the ones that interrupted a wait for work.
    pub idle: u64,
    /// Their time.
    pub idle_ns: u64,
}

impl Stops {
    /// Looks at the outliers of `run`.
    pub fn new(run: &Run, locks: &[LockWord]) -> Stops {
        let sleeps = || run.outliers.iter().filter(|o| o.kind == OutlierKind::OffCpu);
        // Where each thread's waits for work ended.
        let mut ends = HashMap::<u32, Vec<u64>>::new();
        for o in sleeps().filter(|o| is_idle(o, locks)) {
            ends.entry(o.tid).or_default().push(o.end_ns());
        }
        for times in ends.values_mut() {
            times.sort_unstable();
        }
        let mut stops = Stops::default();
        for stop in sleeps().filter(|o| o.blocked == Some(Blocked::Stopped)) {
            let ns = stop.breakdown.get(STOPPED);
            stops.number += 1;
            stops.ns = stops.ns.saturating_add(ns);
            let times = ends.get(&stop.tid).map_or(&[][..], Vec::as_slice);
            let before = times.partition_point(|end| *end <= stop.start_ns);
            let gap = before.checked_sub(1).map(|last| stop.start_ns - times[last]);
            if gap.is_some_and(|gap| gap < INTERRUPTED_NS) {
                stops.idle += 1;
                stops.idle_ns = stops.idle_ns.saturating_add(ns);
            }
        }
        stops
    }

    /// The part of `stopped` that interrupted waits for work.
    pub fn idle_part(&self, stopped: u64) -> u64 {
        part_of(stopped, self.idle_ns, self.ns)
    }
}

/// A wait for work, and none for a lock.
fn is_idle(outlier: &Outlier, locks: &[LockWord]) -> bool {
    let idle = outlier.blocked.is_some_and(|kind| class(Account::Blocked(kind)) == Class::Idle);
    let lock = locks.iter().any(|l| l.tgid == outlier.tgid && l.address == outlier.object);
    idle && !lock
}
