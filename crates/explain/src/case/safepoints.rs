//! Threads of a Java program that stood still until the JVM let them go on.
//!
//! For a collection, and for some other work, the JVM stops all threads of the program: each sleeps
//! on a futex until the JVM's "VM Thread" wakes it. For the kernel that is a wait for work like any
//! other; who ended it shows that it was not.

use std::collections::BTreeMap;

use model::{Account, Blocked, Context, Outlier, OutlierKind, Run};

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

/// Time of such stops by process.
pub fn by_process(run: &Run) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::<u32, u64>::new();
    for stop in run.outliers.iter().filter(|outlier| is_stop(outlier)) {
        let sum = sums.entry(stop.tgid).or_default();
        *sum = sum.saturating_add(stop.breakdown.get(Account::Blocked(Blocked::Futex)));
    }
    sums
}
