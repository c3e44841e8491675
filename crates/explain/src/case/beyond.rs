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

    /// Who was at this end of most waits, where that is none of these:
    /// `reporter (tid 77)`. `None` where none of these is known, as of older runs.
    pub fn beyond(&self, ends: &ChainEnds, end: ChainEnd, run: &Run) -> Option<String> {
        let tid = ends.mostly_at(end, |tid| !self.0.is_empty() && !self.0.contains(&tid))?;
        let name = run.threads.iter().find(|thread| thread.tid == tid).map(|thread| &thread.comm);
        Some(name.map_or(format!("tid {tid}"), |name| format!("{name} (tid {tid})")))
    }
}

/// `which slept by a timer of its own`; of somebody beyond `which waited for reporter (tid 77), which
/// ...`. What that one did is `did`.
pub fn which(did: &str, beyond: Option<&str>) -> String {
    match beyond {
        Some(who) => format!("which waited for {who}, which {did}"),
        None => format!("which {did}"),
    }
}

/// `whoever had the lock`, and those behind it where the end is theirs.
pub fn or_beyond(who: &str, beyond: Option<&str>) -> String {
    match beyond {
        Some(_) => format!("{who}, or whoever that one waited for,"),
        None => who.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, interval, wait};
    use model::WaitSum;

    /// Thread 10 waits at 0x10 for 11, and at its end is thread `end`.
    fn beyond(end: u32) -> Option<String> {
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
        holders.beyond(&ends, ChainEnd::Timer, &run)
    }

    #[test]
    fn who_waits_for_it_and_who_lets_others_go_on_has_it() {
        assert_eq!([10, 11, 12, 13].map(beyond), [None, None, None, None]);
        assert_eq!(beyond(77).as_deref(), Some("thread-77 (tid 77)"));
        assert_eq!(beyond(78).as_deref(), Some("tid 78"));
    }

    #[test]
    fn the_words_say_whose_the_end_is() {
        assert_eq!(which("waited for a disk", None), "which waited for a disk");
        assert_eq!(
            which("waited for a disk", Some("db (tid 7)")),
            "which waited for db (tid 7), which waited for a disk"
        );
    }
}
