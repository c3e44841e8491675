//! The thread that others of the recording wait for while it never rests.
//!
//! From both sides of a queue one thread sleeps until another wakes it: who waits for room looks like who
//! waits for something to do. So such waits count as waiting for work. But whichever it is, no more is done
//! than the one can do that always has something to do.

use std::collections::BTreeMap;

use model::{Account, NeverRests, ThreadAccounts, WaitSum};

use super::finding::share;
use crate::case::Case;
use crate::case::chain_ends::is_holders;
use crate::case::lost::{Class, LOCK_ACCOUNTS, class};

/// It waits for something to do for less than this part of its life.
const RESTS: u64 = 10;
/// So much of its life is waited for by one thread on average, in quarters.
const WAITED_QUARTERS: u64 = 3;
/// Less of the wall time is not worth a sentence.
const WORTH: u64 = 10;

/// The one for which most of the waits are that count as waiting for work, if for most of its life a thread waits
/// for it.
pub(super) fn never_rests(case: &Case) -> Option<NeverRests> {
    if case.scope().is_some() {
        return None;
    }
    let idle = |account| case.accounts.get(account).saturating_sub(case.lost.get(account));
    let most = LOCK_ACCOUNTS.iter().map(|account| idle(*account)).fold(0, u64::saturating_add);
    let mut waited = BTreeMap::<u32, u64>::new();
    for wait in case.run.sums.waits.iter().filter(|wait| may_be_for_work(wait)) {
        let Some((tid, end)) = wait.usual_end else { continue };
        if wait.waiter_tid != tid && is_holders(end) {
            let sum = waited.entry(tid).or_default();
            *sum = sum.saturating_add(wait.usual_ns());
        }
    }
    let (tid, waited_ns) = waited.into_iter().max_by_key(|(_, ns)| *ns)?;
    let thread = case.run.threads.iter().find(|thread| thread.tid == tid)?;
    let (life, rest) = (thread.accounts.total(), rests(thread));
    let is_worth = waited_ns <= most && waited_ns >= case.wall_ns / WORTH;
    let never = life >= case.run.length_ns() / 2
        && rest < life / RESTS
        && waited_ns >= life / 4 * WAITED_QUARTERS;
    (is_worth && never).then(|| NeverRests {
        tid,
        comm: thread.comm.clone(),
        waited_ns,
        wall_share: share(waited_ns, case.wall_ns),
        busy_share: share(life - rest, life),
    })
}

fn may_be_for_work(wait: &WaitSum) -> bool {
    LOCK_ACCOUNTS.contains(&wait.account) && !wait.asked
}

/// How long a thread waited for something to do, or slept by its own choice.
fn rests(thread: &ThreadAccounts) -> u64 {
    thread.accounts.sum_of(|account: Account| class(account) == Class::Idle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, wait};
    use model::{ChainEnd, Run};

    /// Three threads wait for thread 20, which rests for a part of its five seconds.
    fn queue(rest_ns: u64, waits_ns: u64) -> Run {
        let mut run = RunBuilder::new().length(5 * SECOND).thread(
            20,
            10,
            &[(USER, 5 * SECOND - rest_ns), (FUTEX, rest_ns)],
        );
        for tid in 11..14 {
            run = run.thread(tid, 10, &[(FUTEX, waits_ns), (USER, 5 * SECOND - waits_ns)]).wait(
                WaitSum {
                    waiter_tid: tid,
                    waker_tgid: 10,
                    waker_tid: 20,
                    usual_end: Some((20, ChainEnd::Cpu)),
                    ends: [(ChainEnd::Cpu, waits_ns)].into(),
                    ..wait(10, FUTEX, u64::from(tid) * 8, 500, waits_ns)
                },
            );
        }
        run.build()
    }

    #[test]
    fn who_never_rests_while_others_wait_is_named() {
        let found = explain(&queue(SECOND / 10, 4 * SECOND)).never_rests.unwrap();
        assert_eq!((found.tid, found.waited_ns), (20, 12 * SECOND));
        assert!((found.wall_share - 0.6).abs() < 0.01 && (found.busy_share - 0.98).abs() < 0.01);
    }

    /// Three threads wait for it for five quarters of a second each, and it lives five.
    #[test]
    fn for_most_of_its_life_is_enough() {
        assert!(explain(&queue(SECOND / 10, 5 * SECOND / 4)).never_rests.is_some());
    }

    #[test]
    fn who_rests_or_is_waited_for_less_than_it_lives_is_not() {
        assert_eq!(explain(&queue(SECOND, 4 * SECOND)).never_rests, None);
        assert_eq!(explain(&queue(SECOND / 10, SECOND)).never_rests, None);
    }
}
