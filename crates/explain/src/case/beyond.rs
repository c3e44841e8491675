//! Whose doing the end of a chain is: that of whoever had what others waited for, or that of somebody
//! beyond, whom that one waited for with it in hand.

use std::collections::BTreeSet;

use model::{Account, ChainEnd, Run};

use crate::case::chain_ends::ChainEnds;
use crate::case::lock_word::LockWord;

/// Threads that had something that others waited for: they let others go on, or waited for it
/// themselves.
#[derive(Debug, Default)]
pub struct Holders(BTreeSet<u32>);

impl Holders {
    /// Of all waits that `is_at` accepts, by process, account and object.
    pub fn new(run: &Run, is_at: impl Fn(u32, Account, u64) -> bool) -> Holders {
        let waits = run.sums.waits.iter().filter(|w| is_at(w.tgid, w.account, w.object));
        let in_sums = waits.flat_map(|wait| [wait.waiter_tid, wait.waker_tid]);
        let waits = run.outliers.iter().filter(|o| {
            o.blocked.is_some_and(|kind| is_at(o.tgid, Account::Blocked(kind), o.object))
        });
        let kept = waits.flat_map(|o| [o.tid, o.waker.as_ref().map_or(0, |waker| waker.tid)]);
        Holders(in_sums.chain(kept).filter(|tid| *tid != 0).collect())
    }

    /// Of a lock.
    pub fn of(run: &Run, word: &LockWord) -> Holders {
        Holders::new(run, |tgid, account, object| {
            (tgid, account) == (word.tgid, word.account)
                && (word.parked > 0 || object == word.address)
        })
    }

    /// Whose doing this end was in most waits.
    pub fn whose(&self, ends: &ChainEnds, end: ChainEnd, run: &Run) -> Whose {
        // What is not known is said so once.
        if end == ChainEnd::Unknown {
            return Whose::Holders;
        }
        if self.0.is_empty() || !ends.is_known_at(end) {
            return Whose::Unknown;
        }
        let Some(tid) = ends.mostly_at(end, |tid| !self.0.contains(&tid)) else {
            return Whose::Holders;
        };
        let name = run.threads.iter().find(|thread| thread.tid == tid).map(|thread| &thread.comm);
        Whose::Beyond(name.map_or(format!("tid {tid}"), |name| format!("{name} (tid {tid})")))
    }
}

/// Whose doing the end of a chain was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of those that had what others waited for.
    Holders,
    /// Of somebody whom those waited for with it in hand: `reporter (tid 77)`.
    Beyond(String),
    /// Of one of both: who was at this end is not known.
    Unknown,
}

impl Whose {
    /// `which slept by a timer of its own`; of somebody beyond `which waited for reporter (tid 77), which
    /// ...`. What that one did is `did`.
    pub fn which(&self, did: &str) -> String {
        match self {
            Whose::Holders => format!("which {did}"),
            Whose::Beyond(who) => format!("which waited for {who}, which {did}"),
            Whose::Unknown => format!("which, or whoever that one waited for, {did}"),
        }
    }

    /// `whoever had the lock`, and those behind it where the end may be theirs.
    pub fn or_beyond(&self, who: &str) -> String {
        match self {
            Whose::Holders => who.to_owned(),
            Whose::Beyond(_) | Whose::Unknown => format!("{who}, or whoever that one waited for,"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, interval, wait};
    use model::WaitSum;

    /// Thread 10 waits at 0x10 for 11, and at its end is thread `end`.
    fn whose(end: u32, did: ChainEnd) -> Whose {
        let sum = WaitSum {
            waiter_tid: 10,
            waker_tid: 11,
            longest_end: Some((end, ChainEnd::Timer)),
            ..wait(10, FUTEX, 0x10, 9, 900)
        };
        let mut ends = ChainEnds::default();
        ends.add(&sum);
        let run = RunBuilder::new()
            .thread(77, 70, &[])
            .wait(sum)
            .kept(interval(12, FUTEX, 0, 100, Some(13)))
            .build();
        let holders = Holders::new(&run, |tgid, account, object| {
            (tgid, account, object) == (10, FUTEX, 0x10)
        });
        holders.whose(&ends, did, &run)
    }

    #[test]
    fn who_waits_for_it_and_who_lets_others_go_on_has_it() {
        for tid in [10, 11, 12, 13] {
            assert_eq!(whose(tid, ChainEnd::Timer), Whose::Holders);
        }
        assert_eq!(whose(77, ChainEnd::Timer), Whose::Beyond("thread-77 (tid 77)".to_owned()));
        assert_eq!(whose(78, ChainEnd::Timer), Whose::Beyond("tid 78".to_owned()));
    }

    #[test]
    fn where_nobody_is_known_at_the_end_it_is_not_called_the_holders() {
        assert_eq!(whose(10, ChainEnd::Disk), Whose::Unknown);
        assert_eq!(whose(10, ChainEnd::Unknown), Whose::Holders, "did what is not known");
        let words = Whose::Unknown.which("waited for a disk");
        assert_eq!(words, "which, or whoever that one waited for, waited for a disk");
    }

    #[test]
    fn the_words_say_whose_the_end_is() {
        assert_eq!(Whose::Holders.which("waited for a disk"), "which waited for a disk");
        assert_eq!(
            Whose::Beyond("db (tid 7)".to_owned()).which("waited for a disk"),
            "which waited for db (tid 7), which waited for a disk"
        );
    }
}
