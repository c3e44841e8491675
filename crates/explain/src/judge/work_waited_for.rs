//! The causes of what a peer does: who waits for the answers of somebody who is on a CPU all that time
//! waits for whatever keeps the peer there, and that may be a cause of the catalogue (a server that
//! stores a core of each worker before the next can begin).
//!
//! Accounts are of the whole recording: of each, a cause has the same part of the peer's time as of
//! everybody's.

use model::{Finding, Link, Role, part_of};

use super::rank::Judged;
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::cause::{Claim, Id};
use crate::text::{duration, percent};

/// From this part of the peer's CPU time on its causes come before the wait for it.
const MOST: u64 = 2;
/// Less of it is not worth a link of the chain.
const WORTH_A_LINK: u64 = 10;

/// Of the CPU time of those who are waited for: what causes that are findings have, the largest first.
pub(super) struct PeersWork {
    ns: u64,
    causes: Vec<(Id, u64)>,
}

impl PeersWork {
    pub(super) fn of(case: &Case, claim: &Claim, judged: &[Judged]) -> PeersWork {
        let of_cause = |one: &Judged| {
            let cause = one.named().filter(|_| !one.cause.symptom)?;
            let part = |(account, ns)| {
                part_of(ns, cause.lost.get(account), case.accounts.get(account).max(1))
            };
            let work =
                claim.peers_work.iter().filter(|(account, _)| class(*account) == Class::Work);
            Some((one.cause.id, work.map(part).fold(0, u64::saturating_add)))
        };
        let ns = claim.peers_work.sum_of(|account| class(account) == Class::Work);
        let mut causes: Vec<_> = judged.iter().filter_map(of_cause).collect();
        causes.retain(|(_, part)| *part > 0 && *part >= ns / WORTH_A_LINK);
        causes.sort_by_key(|(_, part)| std::cmp::Reverse(*part));
        PeersWork { ns, causes }
    }

    /// What they have, as links of the chain.
    pub(super) fn links(&self) -> impl Iterator<Item = Link> {
        self.causes.iter().map(|(cause, ns)| Link {
            role: Role::Trigger,
            cause: Some(cause.to_string()),
            text: format!(
                "{}, {} of the {} that those it waits for spent on a CPU",
                duration(*ns),
                percent(*ns, self.ns),
                duration(self.ns)
            ),
        })
    }

    /// The largest, if they have most of it.
    pub(super) fn main(&self) -> Option<Id> {
        let explained = self.causes.iter().map(|(_, ns)| ns).sum::<u64>();
        let (cause, _) = self.causes.first()?;
        (explained > self.ns / MOST).then_some(*cause)
    }
}

/// Puts a wait for a peer behind the cause that has most of what the peer does, if that can lead.
pub(super) fn put_behind_causes(findings: &mut [Finding], behind: &[(Id, Id)]) {
    let place = |findings: &[Finding], id: &Id| {
        findings.iter().position(|finding| finding.cause == id.as_str())
    };
    for (wait, cause) in behind {
        let (Some(from), Some(to)) = (place(findings, wait), place(findings, cause)) else {
            continue;
        };
        if from < to && !findings[to].minor {
            findings[from..=to].rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::testing::{RunBuilder, SECOND, wait};
    use model::{Account, Blocked, ChainEnd, Run, WaitSum};

    const WAIT: Account = Account::Blocked(Blocked::ChildWait);
    const POLL: Account = Account::Blocked(Blocked::Poll);
    const KERNEL: Account = Account::Kernel;

    /// Process 2 asks process 1, and that waits for four children, which end after `exit_ns` in exit_mmap and a second of work.
    fn supervisor(exit_ns: u64) -> Run {
        let each = exit_ns + SECOND;
        let exit = ["unmap_page_range", "exit_mmap", "do_exit"];
        let samples = |ns| ns / 1_000_000;
        let asks = WaitSum { asked: true, waker_tgid: 1, ..wait(2, POLL, 0, 4, SECOND) };
        let mut run = RunBuilder::new().thread(1, 1, &[(WAIT, 4 * each)]).wait(asks);
        for child in 10..14 {
            let wait = WaitSum {
                waker_tgid: child,
                waker_comm: "worker".into(),
                ends: [(ChainEnd::Cpu, each)].into(),
                ..wait(1, WAIT, 0, 1, each)
            };
            run = run.thread(child, child, &[(KERNEL, each)]).dead().wait(wait);
            run = run.sampled_path(child, KERNEL, &exit, samples(exit_ns));
            run = run.sampled_path(child, KERNEL, &["vfs_read"], samples(SECOND));
        }
        let mut run = run.build();
        for thread in run.threads.iter_mut().filter(|thread| thread.tgid != 1) {
            thread.comm = "worker".into();
        }
        run
    }

    #[test]
    fn what_keeps_children_comes_before_the_wait_for_them() {
        let explanation = explain(&supervisor(3 * SECOND));
        let causes: Vec<_> = explanation.findings.iter().map(|f| f.cause.as_str()).collect();
        assert_eq!(causes, ["huge-exit", "slow-peer"]);
        let chain = &explanation.findings[1].chain;
        let link = chain.iter().find(|link| link.cause.as_deref() == Some("huge-exit"));
        assert!(link.unwrap().text.starts_with("12.0 s, 75 % of the 16.0 s"), "{chain:?}");
    }

    #[test]
    fn the_wait_comes_first_where_most_of_what_they_do_has_no_cause() {
        let explanation = explain(&supervisor(SECOND / 2));
        let causes: Vec<_> = explanation.findings.iter().map(|f| f.cause.as_str()).collect();
        assert_eq!(causes, ["slow-peer", "huge-exit"]);
    }
}
