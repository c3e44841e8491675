//! mmap-lock: threads of one process wait for the mmap_lock of their own address space.
//!
//! The kernel takes that one lock exclusively for mmap, munmap, mprotect and brk, and shared for
//! page faults that the lock of a single mapping (per-VMA lock) cannot handle. Threads that map much queue up
//! behind each other, asleep, while CPUs are idle.
//!
//! # Evidence
//!
//! Sleeps for an mmap_lock, which the kernel names when a wait for a lock begins
//! (contention_begin); who held it meanwhile, by process, call and mode (the mmap_lock
//! tracepoints). Only what was waited while the process's own threads held it is claimed; what
//! another process held is mm-reader.
//!
//! # Without whylag
//!
//!     perf lock record -a -- sleep 5; perf lock contention   # rwsem: waits by caller
//!     bpftrace -e 'tracepoint:lock:contention_begin { @[comm, kstack(6)] = count(); }'
//!     perf trace -s -p PID                         # how long mmap, munmap and brk take
//!
//! # Sources
//!
//! include/linux/mmap_lock.h; mm/mmap_lock.c; Documentation/mm/process_addrs.rst.

use model::{Metric, RecorderPart, Syscall};

use crate::case::Case;
use crate::case::in_words::{in_words, stacks};
use crate::case::mmap_holders::{READ, Split, WRITE, holders, is_mmap_lock, is_own, place, split};
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::MMAP_LOCK,
    title: "threads of one process wait for each other to change their address space",
    fix: "Map less often: read with pread() into a buffer that is kept instead of mmap() and \
          munmap() per request; leave out MAP_POPULATE; or split the work over several processes, \
          each with its own address space.",
    reproduce: "mysteries/bin/mmap-lock-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::MmapLock]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Calls that take the lock exclusively and are worth a latency line.
const CALLS: [&str; 5] = ["mmap", "munmap", "mprotect", "brk", "madvise"];
/// Holders worth a line.
const HOLDERS_SHOWN: usize = 3;

fn examine(case: &Case) -> Verdict {
    let waited = case.accounts.sum_of(is_mmap_lock);
    if waited == 0 {
        return Err(Absent("no thread waited for an mmap_lock".to_owned()));
    }
    let split = split(case);
    let own = split.own.total();
    let holders = holders(case, is_own);
    let Some(first) = holders.first().filter(|_| own > 0) else {
        return Err(Absent(format!(
            "threads waited {} for an mmap_lock, but never while their own process held it",
            duration(waited)
        )));
    };

    let threads = case.threads_in(|account| split.own.get(account) > 0).count() as u64;
    let title = format!(
        "{} of {} wait for the mmap_lock of their own address space",
        counted(threads, "thread"),
        case.process_name(first.tgid)
    );
    let waits = case.wait_total(WRITE).count.saturating_add(case.wait_total(READ).count);
    let mut claim = Claim::new(title, split.own.clone(), waits);
    claim.mechanism(format!(
        "the kernel serialises changes of an address space: {} asleep for its mmap_lock to write \
         (mmap, munmap, brk), {} to read (page faults)",
        duration(split.own.get(WRITE)),
        duration(split.own.get(READ))
    ));
    let places: Vec<_> = holders
        .iter()
        .take(HOLDERS_SHOWN)
        .map(|h| {
            format!(
                "{} for {} of the waiting ({}, longest {})",
                place(h),
                duration(h.ns),
                counted(h.count, "overlap"),
                duration(h.max_ns)
            )
        })
        .collect();
    claim.trigger(format!("its own threads held it in {}", places.join("; in ")));
    evidence(case, &split, &mut claim);
    rule_out(case, &split, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, split: &Split, claim: &mut Claim) {
    claim.saw(split.in_words(), "mmap_lock_acquire_returned, mmap_lock_released");
    for (account, mode) in [(WRITE, "write"), (READ, "read")] {
        let total = case.wait_total(account);
        if total.ns > 0 {
            claim.saw(
                format!(
                    "{} to {mode}: {} asleep, longest {}",
                    counted(total.count, "wait"),
                    duration(total.ns),
                    duration(total.max_ns)
                ),
                "sched_switch within contention_begin of an mmap_lock",
            );
        }
    }
    for name in CALLS {
        let metric = Syscall::named(name).map(Metric::Syscall);
        let histogram = metric.and_then(|metric| case.histogram(&metric));
        claim.saw_if(
            histogram.map(|h| format!("{name}: {}", quantiles(&h))),
            "system call histogram (sys_enter, sys_exit)",
        );
    }
    let account = if split.own.get(WRITE) >= split.own.get(READ) { WRITE } else { READ };
    claim.saw_if(case.worst(account).map(|o| in_words(case, o)), "longest wait of the run");
    let (kernel, user) = stacks(case, account, |_| true, "rwsem_down");
    claim.saw_if(kernel.map(|s| format!("asleep in {s}")), "kernel stack");
    claim.saw_if(user.map(|s| format!("called from {s}")), "user stack");
}

fn rule_out(case: &Case, split: &Split, claim: &mut Claim) {
    let queued = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "this time was asleep (state D), not runnable; all waiting for a CPU together is {} \
             against {}",
            duration(queued),
            duration(split.own.total())
        ),
    );
    if split.overlap_ns < split.waited_ns / 2 {
        claim.doubt(
            0.8,
            &format!(
                "who held the lock is known for {} of the waiting only; the rest is taken to be \
                 like it",
                percent(split.overlap_ns, split.waited_ns)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::locks::mm_reader;
    use crate::testing::{RunBuilder, SECOND, USER, hold, wait};

    fn run(holder: u32) -> model::Run {
        let mut builder = RunBuilder::new()
            .wait(wait(10, WRITE, 1, 4000, 8 * SECOND))
            .hold(hold(10, holder, true, 6 * SECOND))
            .outlier(WRITE, 12_000_000, &["__schedule", "rwsem_down_write_slowpath", "down_write"]);
        for tid in 10..14 {
            builder = builder.thread(tid, 10, &[(USER, 2 * SECOND), (WRITE, 2 * SECOND)]);
        }
        builder.build()
    }

    #[test]
    fn claimed_when_the_process_holds_its_own_lock() {
        let run = run(10);
        let case = Case::new(&run);
        let claim = examine(&case).unwrap();
        assert_eq!(claim.lost.get(WRITE), 8 * SECOND);
        assert!(claim.title.starts_with("4 threads"), "{}", claim.title);
        assert!(claim.evidence.iter().any(|e| e.text.contains("rwsem_down_write_slowpath <- ")));
        assert!(claim.evidence.iter().all(|e| !e.text.contains("__schedule")));
        assert!((mm_reader::CAUSE.examine)(&case).is_err());
    }

    #[test]
    fn not_claimed_when_another_process_holds_it() {
        let run = run(99);
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("never while their own process held it"), "{missing}");
    }

    #[test]
    fn not_claimed_without_a_known_holder() {
        let run = RunBuilder::new().thread(1, 10, &[(WRITE, SECOND)]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn little_knowledge_of_holders_is_a_doubt() {
        let run = RunBuilder::new()
            .thread(1, 10, &[(WRITE, SECOND)])
            .hold(hold(10, 10, true, SECOND / 10))
            .build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }
}
