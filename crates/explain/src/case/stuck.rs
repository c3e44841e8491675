//! Locks that nobody let go of: who has them, and what that thread does.

use model::{Account, ThreadAccounts};

use crate::case::lock_word::LockWord;
use crate::case::sums::Case;
use crate::text::duration;

/// Owners followed from one lock, at most.
const DEPTH: usize = 8;

/// How the owner of a lock comes not to let go of it.
pub(crate) enum Stuck {
    /// It waits for a lock that one of those has that wait for this one.
    InCircle(String),
    /// It does something else, which the text says.
    Busy(String),
}

/// Who has `word`, as the lock itself says, and what it waits for; `None` if that is not known.
pub(crate) fn stuck(case: &Case, word: &LockWord) -> Option<Stuck> {
    let (mut word, mut owners) = (word, Vec::new());
    let mut text = String::new();
    for _ in 0..DEPTH {
        let Some(owner) = owner(case, word) else { break };
        if !text.is_empty() {
            text += ", and waits for the one that ";
        }
        text += &format!("{} (tid {}) has", owner.comm, owner.tid);
        if owners.contains(&owner.tid) {
            return Some(Stuck::InCircle(format!("{text}: they wait for each other, a deadlock")));
        }
        owners.push(owner.tid);
        match waits_for(case, owner) {
            Some(next) => word = next,
            None => return Some(Stuck::Busy(format!("{text}; {}", does(case, owner)))),
        }
    }
    (!text.is_empty()).then_some(Stuck::Busy(text))
}

/// The lock's word is memory of the program: only a thread of that process is believed.
fn owner<'a>(case: &Case<'a>, word: &LockWord) -> Option<&'a ThreadAccounts> {
    let tid = word.ends.owner()?;
    case.whole().threads.iter().find(|thread| thread.tid == tid && thread.tgid == word.tgid)
}

/// The lock that nobody let go of and that this thread waits for.
fn waits_for<'c>(case: &'c Case, owner: &ThreadAccounts) -> Option<&'c LockWord> {
    case.locks.iter().filter(|word| word.is_never_let_go() && word.tgid == owner.tgid).find(
        |word| {
            case.whole().outliers.iter().any(|outlier| {
                outlier.tid == owner.tid
                    && outlier.object == word.address
                    && outlier.blocked.map(Account::Blocked) == Some(word.account)
            })
        },
    )
}

/// `it was in blocked:timer for 940 ms of 990 ms`.
fn does(case: &Case, owner: &ThreadAccounts) -> String {
    let last = case.whole().outliers.iter().filter(|outlier| {
        outlier.tid == owner.tid && outlier.kind.is_own_time() && outlier.blocked.is_some()
    });
    let accounts =
        last.max_by_key(|last| last.end_ns()).map_or(&owner.accounts, |last| &last.breakdown);
    match accounts.largest_first().first() {
        Some((account, ns)) => format!("last it was in {account} for {}", duration(*ns)),
        None => "what it does is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, wait};
    use model::{Blocked, ChainEnd, WaitSum};

    const SLEEP: Account = Account::Blocked(Blocked::TimerSleep);

    fn never_ended(address: u64, owner: u32) -> WaitSum {
        WaitSum {
            lock_like: 1,
            open: 1,
            ends: [(ChainEnd::Unknown, SECOND)].into(),
            longest_end: Some((owner, ChainEnd::Unknown)),
            ..wait(10, FUTEX, address, 1, SECOND)
        }
    }

    fn of_first(run: RunBuilder) -> Option<Stuck> {
        let run = run.build();
        let case = Case::new(&run);
        stuck(&case, &case.locks[0])
    }

    #[test]
    fn an_owner_that_sleeps_is_named_with_what_it_sleeps_in() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(FUTEX, SECOND)])
            .thread(11, 10, &[(SLEEP, SECOND)])
            .wait(never_ended(0x10, 11));
        let Some(Stuck::Busy(text)) = of_first(run) else { panic!("it is no circle") };
        assert!(text.contains("(tid 11) has; last it was in blocked:timer"), "{text}");
    }

    #[test]
    fn owners_that_wait_for_each_others_locks_are_a_deadlock() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(FUTEX, SECOND)])
            .thread(11, 10, &[(FUTEX, SECOND)])
            .wait(never_ended(0x10, 11))
            .wait(never_ended(0x20, 10))
            .interval(10, FUTEX, 0, SECOND, None)
            .interval(11, FUTEX, 0, SECOND, None);
        let mut run = run.build();
        for outlier in &mut run.outliers {
            outlier.object = if outlier.tid == 10 { 0x10 } else { 0x20 };
        }
        let case = Case::new(&run);
        let Some(Stuck::InCircle(text)) = stuck(&case, &case.locks[0]) else {
            panic!("it is a circle")
        };
        assert!(text.ends_with("a deadlock"), "{text}");
    }

    #[test]
    fn a_number_that_is_no_thread_of_the_process_is_no_owner() {
        let with_other =
            RunBuilder::new().thread(10, 10, &[(FUTEX, SECOND)]).thread(99, 99, &[(SLEEP, SECOND)]);
        let two = WaitSum { count: 2, lock_like: 2, open: 2, ..never_ended(0x10, 99) };
        assert!(of_first(with_other.wait(two)).is_none());
    }
}
