//! Which claims take the time of threads that are always busy: these bound what a program can do, where
//! those that mostly wait for work could do more.

use model::Finding;

use super::hurt::{Share, shares};
use crate::case::Case;
use crate::cause::{Claim, Id};

/// Of which threads a claim takes the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Half of what a thread wanted that was wanted for nine tenths of the recording.
    AlwaysBusy,
    /// It is not known of which, or neither.
    Unclear,
    /// A third of no thread that was wanted for half of the recording.
    MostlyIdle,
}

pub(super) fn takes(case: &Case, claim: &Claim) -> Takes {
    let length = case.run.length_ns();
    let threads: Vec<Share> = shares(case, claim).filter(|share| share.tid.is_some()).collect();
    let takes = |part: u64, wanted_ns: u64| {
        threads
            .iter()
            .any(|share| share.wanted_ns >= wanted_ns && share.claimed_ns >= share.wanted_ns / part)
    };
    let known_ns = threads.iter().map(|share| share.claimed_ns).fold(0, u64::saturating_add);
    match () {
        () if takes(2, length / 10 * 9) => Takes::AlwaysBusy,
        () if takes(3, length / 2) || known_ns < claim.lost.total() / 2 => Takes::Unclear,
        () => Takes::MostlyIdle,
    }
}

/// Puts a finding about a thread that is always busy before a first one that takes time of threads alone
/// which mostly wait for work. Where requests are known the order is by these.
pub(super) fn put_before_idle(findings: &mut [Finding], takes: &[(Id, Takes)]) {
    let is = |finding: &Finding, kind| {
        finding.requests.is_none()
            && takes.iter().any(|(id, takes)| finding.cause == id.as_str() && *takes == kind)
    };
    let Some(first) = findings.first() else { return };
    if !is(first, Takes::MostlyIdle) || first.lost_ns == 0 {
        return;
    }
    let busy = findings.iter().position(|f| !f.minor && is(f, Takes::AlwaysBusy));
    if let Some(busy) = busy {
        findings[..=busy].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::testing::{RunBuilder, SECOND, USER, runner};
    use model::{Account, Blocked};

    const SYNC: Account = Account::Blocked(Blocked::Disk);
    const QUEUED: Account = Account::RunnableWakeup;
    const WORK: Account = Account::Blocked(Blocked::Poll);

    /// A thread that waits for the disk nearly all the time, and 16 workers that compute for `work` and wait
    /// as long for a CPU.
    fn first(work_ns: u64) -> String {
        let mut run = RunBuilder::new().length(4 * SECOND).cpus(2, SECOND / 10, 39 * SECOND / 10);
        run = run.thread(
            10,
            10,
            &[(USER, SECOND / 2), (SYNC, 34 * SECOND / 10), (WORK, SECOND / 10)],
        );
        let stack = ["submit_bio_wait", "blkdev_issue_flush", "ext4_sync_file"];
        run = run.slept_path(10, SYNC, "fdatasync", &stack, 3_000, 34 * SECOND / 10);
        for tid in 11..27 {
            let idle = (WORK, 4 * SECOND - 2 * work_ns);
            run = run.thread(tid, 10, &[(USER, work_ns), (QUEUED, work_ns), idle]);
        }
        let run = run.runner(runner(10, 10, 8_000, 16 * work_ns));
        explain(&run.build()).findings[0].cause.clone()
    }

    #[test]
    fn a_thread_that_is_always_busy_comes_before_those_that_mostly_wait_for_work() {
        assert_eq!(first(SECOND / 2), "disk-sync");
        assert_eq!(first(3 * SECOND / 2), "cpu-runqueue");
    }
}
