//! Waits for spinlocks of the kernel: in which code, and who ran on the other CPUs.
//!
//! A spinlock does not say who has it, but only somebody inside the kernel on another CPU can: the
//! recorder looks at those when a wait of 10 us or more ends, or one of a sample, if it is shorter
//! than 0.26 ms. With two CPUs that is the holder; with more the holder is one of them, and each of them
//! is counted.

use std::collections::BTreeMap;

use model::{ConcurrentCall, TableRead};

use crate::case::kernel_paths::PathTime;
use crate::case::sums::Case;
use crate::cause::Claim;
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

/// The readers of tables that ran while threads of a process spun for a lock that one of these
/// functions takes, the largest sum first. A reader may be in its next call when the wait ends, so
/// every wait that ended while a process ran counts that was seen reading.
pub fn readers(
    case: &Case,
    tgid: u32,
    functions: &[&str],
    is_table: impl Fn(&TableRead) -> bool,
) -> Vec<ConcurrentCall> {
    let asked =
        |sum: &&ConcurrentCall| sum.tgid == tgid && case.goes_through(sum.kernel, functions);
    let mut readers = BTreeMap::<u32, ConcurrentCall>::new();
    for sum in case.run.sums.concurrent_calls.iter().filter(asked) {
        let Some(reader) = readers.get_mut(&sum.other_tgid) else {
            readers.insert(sum.other_tgid, sum.clone());
            continue;
        };
        reader.count = reader.count.saturating_add(sum.count);
        reader.ns = reader.ns.saturating_add(sum.ns);
        if sum.max_ns > reader.max_ns {
            (reader.max_ns, reader.kernel) = (sum.max_ns, sum.kernel);
        }
        if !is_table(&reader.reads) {
            (reader.reads, reader.other_call) = (sum.reads.clone(), sum.other_call);
        }
    }
    let mut readers: Vec<_> = readers.into_values().filter(|r| is_table(&r.reads)).collect();
    readers.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
    readers
}

/// True if whoever ran on the other CPU had the lock, because there is only one other.
pub fn is_holder_known(case: &Case) -> bool {
    case.run.sums.cpus.len() <= 2
}

/// Lowers the confidence where several CPUs ran something while a lock was waited for.
pub fn doubt_holder(case: &Case, claim: &mut Claim) {
    if !is_holder_known(case) {
        let text = format!(
            "the kernel does not report who holds a spinlock: it is one of those that were in the \
             kernel on the {} other CPUs meanwhile",
            case.run.sums.cpus.len() - 1
        );
        claim.doubt(0.9, &text);
    }
}

/// `NAME (pid 12)`; among several CPUs `one of those in the kernel on the other CPUs, NAME (pid 12)
/// the most often,`.
pub fn named_holder(case: &Case, reader: &ConcurrentCall) -> String {
    let name = format!("{} (pid {})", reader.other_comm, reader.other_tgid);
    match is_holder_known(case) {
        true => name,
        false => {
            format!("one of those in the kernel on the other CPUs, the most often {name},")
        }
    }
}

/// `reader (pid 12) in read of /proc/net/udp: 371 waits looked at, 97.2 ms (±10.1 ms) in all, the longest
/// 1.15 ms`.
pub fn in_words(sum: &ConcurrentCall) -> String {
    format!(
        "{} (pid {}) in {} of {}: {} looked at, {} (±{}) in all, the longest {}",
        sum.other_comm,
        sum.other_tgid,
        sum.other_call,
        sum.reads,
        counted(sum.count, "wait"),
        duration(sum.ns),
        duration(sum.error_ns()),
        duration(sum.max_ns)
    )
}
