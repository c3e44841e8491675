//! Work that threads hand over without a connection, by a queue with a condition variable, eventfds,
//! pipes, messages or signals, and for whose answer they wait.
//!
//! Two threads that hand work to each other look the same from both sides: each wakes the other, and
//! waits. What tells them apart is how they began. A worker's life begins with a wait for work; who
//! ends that wait and is itself woken by that worker later on has asked it. Whether a worker answers
//! is not known where it was there before the recording. Where those that are woken wait in the same
//! place as the worker itself, it hands work, or a lock, to its fellows, and answers nobody.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Run, WaitSum};

use crate::case::lock_word::LockWord;
use crate::case::lost::LOCK_ACCOUNTS;

/// A worker is saturated if it waits for work for less than this part of its life.
const RESTS: u64 = 10;

/// A worker, and the waits for what it hands back.
pub(super) struct Handover<'a> {
    pub worker_tid: u32,
    pub waits: Vec<&'a WaitSum>,
    /// It never rests, and more than one waits for it on average: they wait for one another.
    pub is_saturated: bool,
}

/// Of all workers whose begin was seen.
pub(super) fn handovers<'a>(run: &'a Run, locks: &[LockWord]) -> Vec<Handover<'a>> {
    // Where each worker waited for work at first.
    let places: BTreeSet<(u32, Place)> =
        run.sums.waits.iter().filter_map(|wait| Some((wait.began?.0, place(wait)?))).collect();
    let is_for_work =
        |wait: &WaitSum| place(wait).is_some_and(|place| places.contains(&(wait.waker_tid, place)));
    let mut by_waker = BTreeMap::<u32, Vec<&WaitSum>>::new();
    let handed = run.sums.waits.iter().filter(|wait| {
        LOCK_ACCOUNTS.contains(&wait.account)
            && !wait.asked
            && wait.waker_tid != 0
            && !is_of_lock(wait, locks)
            && !is_for_work(wait)
    });
    for wait in handed.filter(|wait| wait.waiter_tid != wait.waker_tid) {
        by_waker.entry(wait.waker_tid).or_default().push(wait);
    }
    let begins: BTreeSet<(u32, u32)> = run.sums.waits.iter().filter_map(|w| w.began).collect();
    let waits_for = |waiter: u32, worker: u32| {
        by_waker.get(&worker).is_some_and(|waits| waits.iter().any(|w| is_of(run, w, waiter)))
    };
    // Who asks a busy worker may not have had to wake it, and then begins with a wait, too.
    let is_asker = |worker: u32, asker: u32| {
        begins
            .iter()
            .any(|(other, first)| *other == asker && *first != worker && waits_for(*first, asker))
            && waits_for(worker, asker)
    };
    // Those that wait for a worker which found work at once begin with a wait, too, that it ends.
    let has_one_worker = |asker: u32| begins.iter().filter(|(_, a)| *a == asker).count() == 1;
    let asked = begins.iter().filter(|(worker, asker)| {
        has_one_worker(*asker) && waits_for(*asker, *worker) && !is_asker(*worker, *asker)
    });
    let handover = |worker_tid: u32| {
        let waits = by_waker.get(&worker_tid).cloned().unwrap_or_default();
        let waited = waits.iter().fold(0u64, |sum, wait| sum.saturating_add(wait.ns));
        let is_saturated = saturated(run, &[worker_tid].into(), waited);
        Handover { worker_tid, is_saturated, waits }
    };
    asked.map(|(worker, _)| handover(*worker)).collect()
}

/// Process, account and object.
type Place = (u32, Account, u64);

/// Where these waits were, if that is known.
fn place(wait: &WaitSum) -> Option<Place> {
    (wait.object != 0).then_some((wait.tgid, wait.account, wait.object))
}

/// True if the thread has waited so; where several have, if its process has.
fn is_of(run: &Run, wait: &WaitSum, tid: u32) -> bool {
    match wait.waiter_tid {
        0 => run.threads.iter().any(|thread| thread.tid == tid && thread.tgid == wait.tgid),
        waiter => waiter == tid,
    }
}

/// True of waits for a lock.
pub(super) fn is_of_lock(wait: &WaitSum, locks: &[LockWord]) -> bool {
    wait.lock_like >= wait.count.div_ceil(2) || locks.iter().any(|word| word.is_of(wait))
}

/// True if these workers never rest, and more wait for them, for `waited` all together, than they are.
pub(super) fn saturated(run: &Run, workers: &BTreeSet<u32>, waited: u64) -> bool {
    let (mut lives, mut rests) = (0u64, 0u64);
    for worker in run.threads.iter().filter(|thread| workers.contains(&thread.tid)) {
        let rest = worker.accounts.sum_of(|account| LOCK_ACCOUNTS.contains(&account));
        lives = lives.saturating_add(worker.accounts.total());
        rests = rests.saturating_add(rest);
    }
    lives > 0 && rests < lives / RESTS && waited > lives.saturating_add(lives / RESTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, wait};
    use model::{Blocked, ChainEnd};

    const WORKER: u32 = 20;
    const OTHER: Account = Account::Blocked(Blocked::Other);

    /// Thread 10 or 11 waits for the worker.
    fn answer(account: Account, waiter: u32, end: ChainEnd) -> WaitSum {
        WaitSum {
            waiter_tid: waiter,
            waker_tid: WORKER,
            waker_tgid: 10,
            waker_comm: "worker".into(),
            ends: [(end, SECOND)].into(),
            ..wait(10, account, u64::from(waiter), 100, SECOND)
        }
    }

    /// The worker waits for work, which `asker` brought first.
    fn work(asker: Option<u32>) -> WaitSum {
        WaitSum {
            waiter_tid: WORKER,
            waker_tid: 10,
            waker_tgid: 10,
            began: asker.map(|asker| (WORKER, asker)),
            ends: [(ChainEnd::Timer, SECOND / 100)].into(),
            ..wait(10, FUTEX, 0x99, 1, SECOND / 100)
        }
    }

    fn lost(account: Account, waits: impl IntoIterator<Item = WaitSum>) -> u64 {
        let run = RunBuilder::new()
            .thread(10, 10, &[(account, SECOND)])
            .thread(11, 10, &[(account, SECOND)])
            .thread(WORKER, 10, &[(USER, SECOND), (FUTEX, SECOND / 100)]);
        let run = waits.into_iter().fold(run, RunBuilder::wait).build();
        Case::new(&run).lost.get(account)
    }

    #[test]
    fn who_waits_for_a_worker_that_it_has_asked_loses_what_that_one_sleeps() {
        assert_eq!(lost(OTHER, [answer(OTHER, 10, ChainEnd::Timer), work(Some(10))]), SECOND);
        // What it computes for one that waits is that one's work.
        assert_eq!(lost(OTHER, [answer(OTHER, 10, ChainEnd::Cpu), work(Some(10))]), 0);
    }

    /// A pool whose workers make jobs for each other: one word, and the last of those that woke there.
    #[test]
    fn who_wakes_others_where_it_waits_for_work_itself_answers_nobody() {
        let jobs = WaitSum {
            waiter_tid: 0,
            began: Some((WORKER, 10)),
            ..WaitSum { object: 0x99, ..answer(FUTEX, 0, ChainEnd::Timer) }
        };
        assert_eq!(lost(FUTEX, [jobs.clone()]), 0);
        // What they wait for in another place is an answer.
        let done = WaitSum { object: 0x55, began: None, ..jobs.clone() };
        assert_eq!(lost(FUTEX, [work(Some(10)), done]), SECOND);
    }

    #[test]
    fn who_asks_a_busy_worker_is_no_worker_though_it_begins_with_a_wait() {
        let idle = WaitSum {
            waker_tid: 11,
            ends: [(ChainEnd::Timer, SECOND)].into(),
            ..wait(10, OTHER, 0x99, 100, SECOND)
        };
        let for_work = |began| WaitSum { waiter_tid: WORKER, began, ..idle.clone() };
        let answers = [answer(FUTEX, 10, ChainEnd::Timer), answer(FUTEX, 11, ChainEnd::Timer)];
        let begins = |began| {
            let [first, mut second] = answers.clone();
            second.began = Some((11, WORKER));
            let run = RunBuilder::new()
                .thread(10, 10, &[(FUTEX, SECOND)])
                .thread(11, 10, &[(FUTEX, SECOND)])
                .thread(WORKER, 10, &[(OTHER, SECOND)])
                .wait(first)
                .wait(second)
                .wait(for_work(began));
            let run = run.build();
            let case = Case::new(&run);
            (case.lost.get(FUTEX), case.lost.get(OTHER))
        };
        assert_eq!(begins(Some((WORKER, 10))), (2 * SECOND, 0));
    }

    #[test]
    fn one_that_ends_the_first_waits_of_several_is_as_likely_their_worker() {
        let first = |waiter| WaitSum {
            began: Some((waiter, WORKER)),
            ..answer(OTHER, waiter, ChainEnd::Timer)
        };
        let back = WaitSum {
            waiter_tid: WORKER,
            waker_tid: 11,
            waker_tgid: 10,
            ends: [(ChainEnd::Timer, SECOND)].into(),
            ..wait(10, FUTEX, 0x99, 100, SECOND)
        };
        assert_eq!(lost(FUTEX, [first(11), back.clone()]), SECOND);
        assert_eq!(lost(FUTEX, [first(10), first(11), back]), 0);
    }

    #[test]
    fn several_that_wait_for_a_worker_that_never_rests_wait_for_one_another() {
        let both = [answer(FUTEX, 10, ChainEnd::Cpu), answer(FUTEX, 11, ChainEnd::Cpu)];
        assert_eq!(lost(FUTEX, both.clone().into_iter().chain([work(Some(10))])), 2 * SECOND);
        // A producer that never rests, too, but none of those that wait has asked it.
        assert_eq!(lost(FUTEX, both.clone().into_iter().chain([work(Some(77))])), 0);
        assert_eq!(lost(FUTEX, both.into_iter().chain([work(None)])), 0);
    }
}
