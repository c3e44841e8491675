//! Waits for spinlocks of the kernel: in which code, and beside whom.
//!
//! A spinlock does not say who has it, but only somebody inside the kernel on another CPU can: the
//! recorder looks at those when a wait of 10 us or more ends.

use model::{BesideSum, TableRead};

use crate::case::Case;
use crate::paths::PathTime;
use crate::text::{counted, duration};

/// Spinning, for spinlocks and for read-write ones.
pub const SPIN: &[&str] = &[
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
];

/// Time on a CPU, spinning for a lock that one of these functions takes.
pub fn spun(case: &Case, functions: &[&str]) -> PathTime {
    case.time_through(functions, |path| path.sampled && case.passes(path, SPIN))
}

/// The readers of tables beside which threads of a process spun, the largest sum first.
pub fn readers<'a>(
    case: &Case<'a>,
    tgid: u32,
    is_table: impl Fn(&TableRead) -> bool,
) -> Vec<&'a BesideSum> {
    let sums = case.run.beside.iter().filter(|sum| sum.tgid == tgid && is_table(&sum.reads));
    let mut readers: Vec<_> = sums.collect();
    readers.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
    readers
}

/// `reader (pid 12) in read of /proc/net/udp: 991 waits, 97.2 ms, the longest 1.15 ms`.
pub fn in_words(sum: &BesideSum) -> String {
    format!(
        "{} (pid {}) in {} of {}: {}, {}, the longest {}",
        sum.other_comm,
        sum.other_tgid,
        sum.other_call,
        sum.reads,
        counted(sum.count, "wait"),
        duration(sum.ns),
        duration(sum.max_ns)
    )
}
