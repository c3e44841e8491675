//! What it costs to hand a lock on to a thread that sleeps: it is ready, and has no CPU yet.
//!
//! Where CPUs are idle and these waits are short, nobody took the CPU away from it: the scheduler put it
//! behind whoever woke it. So each turn is longer by that than the holder needs.

use std::collections::BTreeMap;

use model::{Account, Accounts, ChainEnd, part_of};

use crate::case::Case;
use crate::case::lock_word::LockWord;
use crate::case::run_queue::Queue;
use crate::cause::Claim;
use crate::text::duration;

/// The sleeps alone have to be one in so many parts of the wall time, with which they are a finding of a busy
/// program (`judge/worth.rs`): what a lock costs that is hardly contended makes none.
const CONTENDED: u64 = 20;
/// It is mentioned from one in so many parts of the claim on.
const MENTIONED: u64 = 20;

/// Time of threads that queue for locks, because whoever was to have the lock next had no CPU yet.
#[derive(Default)]
pub struct HandingOn {
    /// Asleep behind such a thread, by account.
    behind: Accounts,
    /// Ready to run, after a sleep for a lock.
    woken_ns: u64,
}

impl HandingOn {
    /// Of locks that threads sleep for `asleep_ns`. Nothing where CPUs are short, or waited for as long as a slice:
    /// then this is no matter of the lock.
    pub fn of(case: &Case, locks: &[&LockWord], asleep_ns: u64) -> HandingOn {
        let is_contended = asleep_ns > 0 && asleep_ns >= case.wall_ns / CONTENDED;
        if !is_contended || !Queue::of(case).is_ok_and(|queue| queue.is_of_placement(case)) {
            return HandingOn::default();
        }
        let behind = |word: &&LockWord| {
            let ns = word.ends.part_of(word.lost_ns(), |end| end == ChainEnd::RunQueue);
            (word.account, ns)
        };
        let mut sleeps = BTreeMap::<u32, u64>::new();
        for word in locks {
            let of_process = sleeps.entry(word.tgid).or_default();
            *of_process = of_process.saturating_add(word.count.saturating_sub(word.open));
        }
        let woken = sleeps.iter().map(|(tgid, of_locks)| {
            let woken = case.process(*tgid).map_or(0, |of| of.get(Account::RunnableWakeup));
            part_of(woken, *of_locks, all_sleeps(case, *tgid))
        });
        HandingOn {
            behind: locks.iter().map(behind).collect(),
            woken_ns: woken.fold(0, u64::saturating_add),
        }
    }

    pub fn accounts(&self) -> Accounts {
        let mut all = self.behind.clone();
        all.add(Account::RunnableWakeup, self.woken_ns);
        all
    }

    pub fn explain(&self, claim: &mut Claim) {
        let behind_ns = self.behind.total();
        if self.woken_ns.saturating_add(behind_ns) <= claim.lost.total() / MENTIONED {
            return;
        }
        claim.mechanism(format!(
            "{} more ready to run, after the lock had let them go on, and {} asleep behind such a \
             thread: CPUs were idle, so this is what it costs to hand the lock on",
            duration(self.woken_ns),
            duration(behind_ns)
        ));
    }
}

/// Each sleep that has ended was followed by a wait for a CPU.
fn all_sleeps(case: &Case, tgid: u32) -> u64 {
    let waits = case.run.sums.waits.iter().filter(|wait| wait.tgid == tgid);
    waits.map(|wait| wait.count).fold(0, u64::saturating_add)
}
