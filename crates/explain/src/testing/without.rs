//! A recorded run as it would be had a part of the recorder been off.
//!
//! What a part delivers is taken out, and time goes to the account that the recorder charges when
//! it lacks that part (`bpf/waits.h`, `sleep_account`).

use std::collections::BTreeMap;

use model::{
    Account, Accounts, Blocked, EventKind, Metric, OutlierKind, PathSum, RecorderPart, Run, Space,
    Syscall, part_of,
};

/// Interrupts that `irq_vectors` reports; those of devices have other names.
const VECTORS: [&str; 5] =
    ["local_timer", "reschedule", "call_function", "call_function_single", "irq_work"];

/// How names of softirqs begin among interrupts.
const SOFTIRQ: &str = "softirq ";

/// `run` without what `part` delivers. Its capabilities stay: it does not say that the part was off.
pub fn without(run: &Run, part: RecorderPart) -> Run {
    let mut run = run.clone();
    match part {
        RecorderPart::Threads => run = without_threads(&run),
        RecorderPart::SystemCalls => without_calls(&mut run),
        RecorderPart::Locks => without_locks(&mut run),
        RecorderPart::MmapLock => {
            run.sums.holds.clear();
            run.outliers.iter_mut().for_each(|outlier| outlier.holder = None);
            run.outliers.retain(|outlier| outlier.kind != OutlierKind::LockHold);
        }
        RecorderPart::Faults => without_faults(&mut run),
        RecorderPart::Interrupts => without_device_irqs(&mut run),
        RecorderPart::Softirqs => without_softirqs(&mut run),
        RecorderPart::Vectors => {
            without_hard_irqs(&mut run, is_vector);
            let is_vector = |i: &model::Interrupts| is_vector(&i.longest);
            for outlier in &mut run.outliers {
                outlier.interrupts = outlier.interrupts.take().filter(|i| !is_vector(i));
            }
        }
        RecorderPart::BlockIo => {
            run.seconds.retain(|second| !matches!(second.metric, Metric::BlockIo(_)));
            without_events(&mut run, &[EventKind::BlockIo]);
        }
        RecorderPart::Signals => without_events(&mut run, &[EventKind::Signal]),
        RecorderPart::Reclaim => {
            let of_reclaim = [Metric::DirectReclaim, Metric::Compaction];
            run.seconds.retain(|second| !of_reclaim.contains(&second.metric));
            without_events(&mut run, &[EventKind::DirectReclaim, EventKind::Compaction]);
        }
        RecorderPart::Writeback => {
            without_events(&mut run, &[EventKind::DirtyThrottle]);
            charge(&mut run, |account, _| match account {
                Account::Blocked(Blocked::DirtyThrottle) => Account::Blocked(Blocked::Disk),
                other => other,
            });
        }
        RecorderPart::Journal => without_events(&mut run, &[EventKind::JournalCommit]),
        RecorderPart::PageCache => run.sums.page_reads.clear(),
        RecorderPart::Samples => run.sums.paths.retain(|path| !path.sampled),
        RecorderPart::Timers => run.outliers.iter_mut().for_each(|outlier| outlier.timer = None),
        // Packets dropped are noted at sockets that a walk of this part found.
        RecorderPart::Sockets => run.sockets = model::Sockets::default(),
        RecorderPart::Drops => run.sockets.drops.clear(),
        RecorderPart::Requests => {
            let messages = run.messages.clone();
            let is_left = |program: u32| !messages.is_from_sockets(program);
            run.messages.programs.retain(|program| is_left(program.program));
            run.messages.seconds.retain(|second| is_left(second.program));
            run.messages.slow.retain(|message| is_left(message.program));
            run.messages.fast.retain(|message| is_left(message.program));
            run.sums.services.clear();
        }
        RecorderPart::SampledCalls => run.seconds.retain(|second| !second.metric.is_of_windows()),
        RecorderPart::Unknown(_) => {}
    }
    run
}

/// `run` as where the kernel does not give the names of its functions (kptr_restrict).
pub fn without_kernel_symbols(run: &Run) -> Run {
    let mut run = run.clone();
    for stack in run.stacks.values_mut().filter(|stack| stack.space == Space::Kernel) {
        stack.frames.iter_mut().for_each(|frame| frame.symbol = None);
    }
    run
}

/// `run` as where all histograms were taken, before any was given to what it did.
pub fn without_histograms(run: &Run) -> Run {
    Run { seconds: Vec::new().into(), ..run.clone() }
}

/// What is left is read from /proc or belongs to the host.
fn without_threads(run: &Run) -> Run {
    Run {
        id: run.id,
        header: run.header.clone(),
        end: run.end.clone(),
        facts: run.facts.clone(),
        jitter: run.jitter.clone(),
        bench: run.bench.clone(),
        ..Run::default()
    }
}

/// What a sleep is for stays: its call is in the registers of the thread. What a thread had sent before is
/// known of sockets alone, and only with requests.
fn without_calls(run: &mut Run) {
    run.seconds.retain(|second| !matches!(second.metric, Metric::Syscall(_) | Metric::HeldSend(_)));
    without_events(run, &[EventKind::HeldSend]);
    run.sums.call_errors.clear();
    run.sums.retries.clear();
    charge(run, |account, _| match account {
        Account::User | Account::Syscall(_) => Account::Running,
        other => other,
    });
    for wait in &mut run.sums.waits {
        wait.asked = false;
        wait.idle_turn_ns = 0;
    }
    run.outliers.retain(|outlier| outlier.kind != OutlierKind::Syscall);
}

fn without_locks(run: &mut Run) {
    let spun_in = calls_that_spin(run);
    run.sums.concurrent_calls.clear();
    // mmap_lock has tracepoints of its own.
    let is_seen = |metric: &Metric| match metric {
        Metric::Lock(class) => class.starts_with("mmap_lock"),
        _ => true,
    };
    run.seconds.retain(|second| is_seen(&second.metric));
    charge(run, |account, tgid| match account {
        Account::Spin => spun_in.get(&tgid).map_or(Account::User, |call| Account::Syscall(*call)),
        Account::Blocked(Blocked::MmapLockRead | Blocked::MmapLockWrite) => account,
        Account::Blocked(kind) if kind.is_kernel_lock() => {
            Account::Blocked(Blocked::Uninterruptible)
        }
        other => other,
    });
}

/// For each process the call in which it was mostly seen to spin.
fn calls_that_spin(run: &Run) -> BTreeMap<u32, Syscall> {
    let spins = |path: &&PathSum| path.account == Account::Spin && path.call.is_some();
    let mut paths: Vec<_> = run.sums.paths.iter().filter(spins).collect();
    paths.sort_by_key(|path| path.ns);
    paths.into_iter().filter_map(|path| Some((path.tgid, path.call?))).collect()
}

fn without_faults(run: &mut Run) {
    run.seconds.retain(|second| second.metric != Metric::PageFaultSleep);
    run.outliers.retain(|outlier| outlier.kind != OutlierKind::FirstCall);
    run.outliers.iter_mut().for_each(|outlier| outlier.fault_ip = None);
    charge(run, |account, _| match account {
        Account::Blocked(Blocked::FaultMajor) => Account::Blocked(Blocked::Disk),
        Account::Blocked(Blocked::FaultMinor) => Account::Blocked(Blocked::Uninterruptible),
        other => other,
    });
}

fn without_device_irqs(run: &mut Run) {
    without_hard_irqs(run, |name| !is_vector(name));
    let is_device = |longest: &str| !is_vector(longest) && !longest.starts_with(SOFTIRQ);
    for outlier in &mut run.outliers {
        outlier.interrupts = outlier.interrupts.take().filter(|i| !is_device(&i.longest));
    }
}

fn without_softirqs(run: &mut Run) {
    run.seconds.retain(|second| !matches!(second.metric, Metric::SoftIrq(_)));
    charge(run, |account, _| match account {
        Account::SoftIrq => Account::User,
        other => other,
    });
    for outlier in &mut run.outliers {
        outlier.interrupts = outlier.interrupts.take().filter(|i| !i.longest.starts_with(SOFTIRQ));
    }
}

/// Without the interrupts of these names: what they took of the threads' time is the threads' own.
fn without_hard_irqs(run: &mut Run, is_gone: impl Fn(&str) -> bool) {
    let (mut gone, mut all) = (0u64, 0u64);
    run.seconds.retain(|second| {
        let Metric::HardIrq(name) = &second.metric else { return true };
        let (ns, is_gone) = (second.histogram.sum(), is_gone(name));
        all = all.saturating_add(ns);
        gone = gone.saturating_add(if is_gone { ns } else { 0 });
        !is_gone
    });
    for thread in &mut run.threads {
        let served = thread.accounts.get(Account::HardIrq);
        let own = part_of(served, gone, all);
        let others = thread.accounts.iter().filter(|(account, _)| *account != Account::HardIrq);
        let mut accounts: Accounts = others.collect();
        accounts.add(Account::HardIrq, served - own);
        accounts.add(Account::User, own);
        thread.accounts = accounts;
    }
}

fn is_vector(name: &str) -> bool {
    VECTORS.contains(&name)
}

fn without_events(run: &mut Run, kinds: &[EventKind]) {
    run.events.retain(|event| !kinds.contains(&event.kind));
}

/// Charges the time of each account of each process to another one.
fn charge(run: &mut Run, to: impl Fn(Account, u32) -> Account) {
    let all = |accounts: &Accounts, tgid| {
        let mut charged = Accounts::new();
        accounts.iter().for_each(|(account, ns)| charged.add(to(account, tgid), ns));
        charged
    };
    for thread in &mut run.threads {
        thread.accounts = all(&thread.accounts, thread.tgid);
        thread.open = to(thread.open, thread.tgid);
    }
    for outlier in &mut run.outliers {
        outlier.breakdown = all(&outlier.breakdown, outlier.tgid);
        outlier.blocked =
            outlier.blocked.map(|kind| match to(Account::Blocked(kind), outlier.tgid) {
                Account::Blocked(kind) => kind,
                _ => Blocked::Other,
            });
    }
    run.sums.waits.iter_mut().for_each(|wait| wait.account = to(wait.account, wait.tgid));
    run.sums.paths.iter_mut().for_each(|path| path.account = to(path.account, path.tgid));
    run.sums.stack_sums.iter_mut().for_each(|sum| sum.account = to(sum.account, sum.tgid));
}
