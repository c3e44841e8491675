//! Whom a thread waits for that waits until a timeout, looks, and waits again.
//!
//! Nobody ends such waits, so the chain of who made whom wait ends with them. Interpreters take their lock
//! that way: who wants Python's or Ruby's waits for a few milliseconds, asks the one that has it to let
//! go, and waits again. That one ends other waits for the same futex words.

use std::collections::BTreeSet;

use model::{Account, Blocked, ChainEnd, Run, ThreadAccounts, WaitSum, part_of};

use crate::case::chain_ends::ChainEnds;
use crate::cause::Claim;
use crate::text::percent;

const FUTEX: Account = Account::Blocked(Blocked::Futex);
/// Who has it works with it for at least so large a part of its life; who gives others work, and waits
/// for them to do it, does not.
const MOSTLY: (u64, u64) = (3, 4);

pub const FIX_OF_LOOKS: &str = "One thread has what the others look for nearly all the time: let it do less with \
                                that in hand, or let go of it sooner. Of an interpreter's lock: its work \
                                belongs in another process, or in a library that lets go of the lock.";

/// The thread that has what others look for, again and again.
#[derive(Debug, PartialEq, Eq)]
pub struct HasIt {
    who: String,
    busy: String,
}

impl HasIt {
    /// Of waits that ended with threads of this process which waited until a timeout, or of another one if
    /// the longest say so. `None` if it was not that, or if nobody is known to have what they look for.
    pub fn of(ends: &ChainEnds, end: ChainEnd, tgid: u32, run: &Run) -> Option<HasIt> {
        if end != ChainEnd::Timeout {
            return None;
        }
        let looks = ends.mostly_at(end, |_| true);
        let looks = run.threads.iter().find(|thread| Some(thread.tid) == looks);
        let tgid = looks.map_or(tgid, |thread| thread.tgid);
        let words: BTreeSet<u64> = timed(run, tgid).map(|wait| condition(wait.object)).collect();
        let has = run.threads.iter().filter(|thread| {
            thread.tgid == tgid
                && works(thread)
                && lets_go(run, thread, &words)
                && takes_turns(run, thread)
        });
        let has = has.max_by_key(|thread| busy(thread))?;
        Some(HasIt {
            who: format!("{} (tid {})", has.comm, has.tid),
            busy: percent(busy(has), has.accounts.total()),
        })
    }
}

/// What was done at this end, after `which` or `it`.
pub fn did(end: ChainEnd, has_it: Option<&HasIt>) -> String {
    has_it.map_or_else(
        || end.to_string(),
        |HasIt { who, busy }| {
            format!(
                "waited, until a timeout each time, for {who}, which was on a CPU or ready for one for \
                 {busy} of its time"
            )
        },
    )
}

/// No thread ended those waits.
pub fn doubt_looks(has_it: Option<&HasIt>, claim: &mut Claim) {
    if let Some(HasIt { who, .. }) = has_it {
        claim.doubt(0.9, &format!("that {who} has it is known by other waits for it alone"));
    }
}

/// Waits of this process that a timeout ended.
fn timed(run: &Run, tgid: u32) -> impl Iterator<Item = &WaitSum> {
    let is_timed = move |wait: &&WaitSum| {
        (wait.tgid, wait.account) == (tgid, FUTEX)
            && wait.ends_in(|end| end == ChainEnd::Timeout) > 0
    };
    run.sums.waits.iter().filter(is_timed)
}

/// A condition variable of glibc has two futex words, side by side, for waiters in turn.
fn condition(word: u64) -> u64 {
    word >> 3
}

/// On a CPU, or ready for one, with what it has in hand.
fn busy(thread: &ThreadAccounts) -> u64 {
    let is_busy = |account: Account| account.is_running() || account.is_runnable();
    thread.accounts.sum_of(is_busy)
}

fn works(thread: &ThreadAccounts) -> bool {
    let busy = busy(thread);
    busy > 0 && busy >= part_of(thread.accounts.total(), MOSTLY.0, MOSTLY.1)
}

/// It has ended other waits for these words.
fn lets_go(run: &Run, thread: &ThreadAccounts, words: &BTreeSet<u64>) -> bool {
    run.sums.waits.iter().any(|wait| {
        (wait.tgid, wait.account, wait.waker_tid) == (thread.tgid, FUTEX, thread.tid)
            && words.contains(&condition(wait.object))
    })
}

/// It waits itself for those that look: who has work for them, and never waits, has no lock.
fn takes_turns(run: &Run, thread: &ThreadAccounts) -> bool {
    let looking: BTreeSet<u32> = timed(run, thread.tgid).map(|wait| wait.waiter_tid).collect();
    // Of sums of several threads no one is known.
    let looks = |tid: u32| looking.contains(&tid) || looking.contains(&0);
    run.sums.waits.iter().any(|wait| {
        (wait.tgid, wait.account) == (thread.tgid, FUTEX)
            && (wait.waiter_tid == thread.tid || wait.waiter_tid == 0)
            && ![0, thread.tid].contains(&wait.waker_tid)
            && looks(wait.waker_tid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, wait};

    /// Thread 10 looks at 0x50 until a timeout, and 11, which runs for so long, lets it go on now and
    /// then; `back` says whether 11 waits for 10, too.
    fn has_it(runs_for: u64, word: u64, back: bool) -> Option<String> {
        let timed = WaitSum {
            waiter_tid: 10,
            ends: [(ChainEnd::Timeout, SECOND)].into(),
            longest_end: Some((10, ChainEnd::Timeout)),
            ..wait(10, FUTEX, 0x50, 90, SECOND)
        };
        let ended_by = |waker: u32, waiter: u32, word: u64| WaitSum {
            waiter_tid: waiter,
            waker_tgid: 10,
            waker_tid: waker,
            ..wait(10, FUTEX, word, 9, SECOND / 100)
        };
        let mut ends = ChainEnds::default();
        ends.add(&timed);
        let other = SECOND - runs_for;
        let run = RunBuilder::new()
            .thread(10, 10, &[(FUTEX, SECOND)])
            .thread(11, 10, &[(Account::User, runs_for), (FUTEX, other)])
            .wait(timed)
            .wait(ended_by(11, 10, word));
        let run = if back { run.wait(ended_by(10, 11, 0x80)) } else { run };
        let run = run.build();
        assert_eq!(HasIt::of(&ends, ChainEnd::Timer, 10, &run), None, "not looked for");
        HasIt::of(&ends, ChainEnd::Timeout, 10, &run).map(|has| did(ChainEnd::Timeout, Some(&has)))
    }

    #[test]
    fn who_lets_go_of_it_at_times_and_runs_has_it() {
        let found = has_it(SECOND / 10 * 9, 0x54, true).unwrap();
        assert_eq!(
            found,
            "waited, until a timeout each time, for thread-11 (tid 11), which was on a CPU or ready for \
             one for 90 % of its time"
        );
        assert_eq!(has_it(SECOND / 10 * 9, 0x60, true), None, "of another word");
        assert_eq!(has_it(SECOND / 2, 0x54, true), None, "it waits as long");
        assert_eq!(has_it(SECOND / 10 * 9, 0x54, false), None, "it gives work");
    }

    #[test]
    fn otherwise_the_end_is_what_was_recorded() {
        assert_eq!(did(ChainEnd::Timeout, None), "waited until a timeout");
    }
}
