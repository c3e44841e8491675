//! Threads of a Java program that stood still until the JVM let them go on.
//!
//! For a collection, and for some other work, the JVM stops all threads of the program: each sleeps
//! on a futex until the JVM's "VM Thread" wakes it. For the kernel that is a wait for work like any
//! other; who ended it shows that it was not.

use std::collections::BTreeMap;

use model::{Account, Blocked, Context, Outlier, OutlierKind, Run, WaitSum};

use crate::case::spans::{Span, union};

/// The thread that stops the others (HotSpot).
pub const VM_THREAD: &str = "VM Thread";
/// HotSpot's collectors, besides the VM Thread.
pub const COLLECTORS: [&str; 2] = ["GC Thread#", "G1 "];
/// Its other threads, as the kernel shortens their names. They wait for the VM Thread for work.
const OTHERS: [&str; 7] = [
    "VM Periodic Tas",
    "Reference Handl",
    "Finalizer",
    "Signal Dispatch",
    "Service Thread",
    "Monitor Deflati",
    "Notification Th",
];

/// They go on compiling while the program stands still.
const COMPILERS: [&str; 2] = ["C1 Compiler", "C2 Compiler"];

/// A process that stood still for one in so many parts of the run does so often.
const OFTEN: u64 = 20;

/// True of a thread that is the JVM's own.
pub fn is_of_jvm(comm: &str) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|name| comm.starts_with(name));
    comm == VM_THREAD || is_one_of(&COLLECTORS) || is_one_of(&OTHERS) || is_one_of(&COMPILERS)
}

/// True if a thread of the program slept until the JVM let it go on.
pub fn is_stop(outlier: &Outlier) -> bool {
    let of_jvm = |names: &[&str]| names.iter().any(|name| outlier.comm.starts_with(name));
    outlier.kind == OutlierKind::OffCpu
        && outlier.blocked == Some(Blocked::Futex)
        && outlier.waker.as_ref().is_some_and(|waker| {
            waker.comm == VM_THREAD && waker.tgid == outlier.tgid && waker.context == Context::Task
        })
        && !of_jvm(&COLLECTORS)
        && !of_jvm(&OTHERS)
}

/// The times in which at least one thread of the process was stopped, without overlaps.
pub(crate) fn stood_still(run: &Run, tgid: u32) -> Vec<Span> {
    let kept = run.outliers.iter().chain(run.in_messages.iter());
    let stops = kept.filter(|outlier| outlier.tgid == tgid && is_stop(outlier));
    let asleep = |stop: &Outlier| {
        let ns = stop.breakdown.get(Account::Blocked(Blocked::Futex));
        Span { from_ns: stop.start_ns, to_ns: stop.start_ns.saturating_add(ns) }
    };
    union(&stops.map(asleep).collect::<Vec<_>>())
}

/// True of a process that stood still for a twentieth of the run or longer. Whoever a stop has kept
/// from waking others looks there like one that had a turn.
pub(crate) fn is_often_stopped(run: &Run, tgid: u32) -> bool {
    let stood = stood_still(run, tgid).into_iter().map(Span::ns).fold(0, u64::saturating_add);
    stood > 0 && stood >= run.length_ns() / OFTEN
}

/// True of waits that ended because the JVM let its threads go on, or had done what they asked for.
pub(crate) fn is_for_jvm(wait: &WaitSum) -> bool {
    wait.waker_comm == VM_THREAD && wait.waker_tgid == wait.tgid
}

/// Time of such stops by process.
pub fn by_process(run: &Run) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::<u32, u64>::new();
    for stop in run.outliers.iter().filter(|outlier| is_stop(outlier)) {
        let sum = sums.entry(stop.tgid).or_default();
        *sum = sum.saturating_add(stop.breakdown.get(Account::Blocked(Blocked::Futex)));
    }
    sums
}
