//! Waiting for the tables of System V IPC objects: what sysv-sem and shm-attach share.
//!
//! Each kind of object has one table in an IPC namespace, with one read-write semaphore. Making,
//! removing, attaching and detaching take it for writing, listing takes it for reading, whoever
//! does it and whatever the objects are for. A writer first spins, on the CPU, and then sleeps.

use std::collections::BTreeMap;

use model::{Account, Blocked, PathSum, Syscall, part_of};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::text::{count, counted, duration, mean, percent};

/// Spinning and sleeping for a read-write semaphore of the kernel.
pub const WAIT: &[&str] = &[
    "rwsem_down_write_slowpath",
    "rwsem_down_read_slowpath",
    "rwsem_spin_on_owner",
    "rwsem_optimistic_spin",
];
const RWSEM: Account = Account::Blocked(Blocked::Rwsem);

/// Time of some calls in the table's lock.
pub struct TableWait {
    /// Spinning, sleeping, and the wait for a CPU after the sleeps.
    pub time: PathTime,
    /// Of it: spinning.
    pub spun_ns: u64,
    /// Of it: asleep.
    pub slept_ns: u64,
    /// All CPU time of the calls, and the sleep in the lock.
    pub calls_ns: u64,
}

/// The call of a path is one of these.
pub fn is_one_of(path: &PathSum, calls: &[&str]) -> bool {
    path.call.is_some_and(|call| calls.iter().any(|name| Syscall::named(name) == Some(call)))
}

/// What these calls waited for the lock of their table; mmap_lock is another lock.
pub fn waited(case: &Case, calls: &[&str]) -> TableWait {
    let here = |path: &PathSum| is_one_of(path, calls) && (path.sampled || path.account == RWSEM);
    let mut time = case.time_through(WAIT, here);
    let slept_ns = time.accounts.get(RWSEM);
    let spun_ns = time.ns().saturating_sub(slept_ns);
    let on_cpu = case.time_through(&[], |path| path.sampled && is_one_of(path, calls)).ns();
    if time.sleeps > 0 {
        time.accounts.add(Account::RunnableWakeup, woken_late(case, here));
    }
    TableWait { time, spun_ns, slept_ns, calls_ns: on_cpu.saturating_add(slept_ns) }
}

/// The wait for a CPU after such sleeps: of each process as large a part of its waits after being
/// woken as these are of its sleeps.
fn woken_late(case: &Case, here: impl Fn(&PathSum) -> bool) -> u64 {
    let mut sleeps = BTreeMap::<u32, u64>::new();
    for thread in &case.run.threads {
        let sum = sleeps.entry(thread.tgid).or_default();
        *sum = sum.saturating_add(thread.sleeps);
    }
    let of_lock = case.sleeps_by_process(WAIT, here);
    let late = of_lock.into_iter().map(|(tgid, of_lock)| {
        let woken = case.process(tgid).map_or(0, |of| of.get(Account::RunnableWakeup));
        part_of(woken, of_lock, sleeps.get(&tgid).copied().unwrap_or(0))
    });
    late.fold(0, u64::saturating_add)
}

/// `semget: 12,345 calls, 8.1 us on average`, for each of the calls that was made.
pub fn calls_in_words(case: &Case, calls: &[&str]) -> Option<String> {
    let of_each: Vec<_> = calls
        .iter()
        .map(|call| (call, case.calls(call)))
        .filter(|(_, (n, _))| *n > 0)
        .map(|(call, (n, ns))| {
            format!("{call}: {}, {} on average", case.calls_in_words(n, "call"), mean(ns, n))
        })
        .collect();
    (!of_each.is_empty()).then(|| of_each.join("; "))
}

/// How the time in the lock divides, in words.
pub fn lock_in_words(wait: &TableWait) -> String {
    format!(
        "{} spinning ({} samples) and {} asleep ({}) for the lock, {} of all time in these calls",
        duration(wait.spun_ns),
        count(wait.time.samples),
        duration(wait.slept_ns),
        counted(wait.time.sleeps, "sleep"),
        percent(wait.spun_ns.saturating_add(wait.slept_ns), wait.calls_ns)
    )
}
