//! Locks that are known by the function in which threads wait for them.
//!
//! Java's monitors let each thread sleep on a word of its own. Where those that wait wake each other in
//! turn that shows the lock ([`parking`](crate::case::parking)); where one thread has it for long, and the others
//! for moments, the turns are too short to show anything, but `ObjectMonitor::enter` does.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, Run, WaitSum};

use crate::case::lock_word::LockWord;
use crate::case::purposes::{Purpose, Purposes};

const FUTEX: Account = Account::Blocked(Blocked::Futex);

/// The waits for one word.
struct Word {
    lock: LockWord,
    waiters: BTreeSet<u32>,
    parts: Vec<WaitSum>,
}

/// The locks, and the words of each process that they are: one on which several threads wait is a lock of
/// its own, and so is the only one of a process; those of one thread each are together one.
pub(super) fn named_locks(run: &Run, purposes: &Purposes) -> (Vec<LockWord>, BTreeSet<(u32, u64)>) {
    let mut words = BTreeMap::<(u32, u64), Word>::new();
    for wait in &run.sums.waits {
        let Some(known) = purposes.known(wait) else { continue };
        let Some(function) = known.function(Purpose::Lock) else { continue };
        let new = || Word {
            lock: LockWord::new(wait.tgid, FUTEX, wait.object),
            waiters: BTreeSet::new(),
            parts: Vec::new(),
        };
        let word = words.entry((wait.tgid, wait.object)).or_insert_with(new);
        word.lock.function = Some(function.to_owned());
        // What is known as a lock has the value of one.
        let part = known.part_for(wait, Purpose::Lock);
        let part = WaitSum { lock_like: part.count, ..part };
        word.lock.add(&part);
        word.parts.push(part);
        word.waiters.insert(wait.waiter_tid);
    }
    let all = words.keys().copied().collect();
    let mut of_processes = BTreeMap::<u32, usize>::new();
    for (tgid, _) in words.keys() {
        *of_processes.entry(*tgid).or_default() += 1;
    }
    let is_own = |word: &Word| {
        word.waiters.len() == 1 && !word.waiters.contains(&0) && of_processes[&word.lock.tgid] > 1
    };
    let (own, shared): (Vec<Word>, Vec<Word>) = words.into_values().partition(is_own);
    let mut locks: Vec<LockWord> = shared.into_iter().map(|word| word.lock).collect();
    locks.extend(together(&own));
    (locks, all)
}

/// Those of one process as one lock.
fn together(own: &[Word]) -> Vec<LockWord> {
    let mut locks = BTreeMap::<u32, LockWord>::new();
    let mut waiters = BTreeSet::new();
    for word in own {
        let lock = locks.entry(word.lock.tgid);
        let lock = lock.or_insert_with(|| LockWord::new(word.lock.tgid, FUTEX, 0));
        lock.function.clone_from(&word.lock.function);
        lock.parked += word.waiters.iter().filter(|tid| waiters.insert(**tid)).count() as u64;
        word.parts.iter().for_each(|part| lock.add(part));
    }
    locks.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::testing::{RunBuilder, SECOND, interval, user_stack, wait};
    use model::ChainEnd;

    /// Threads 10 and 11 wait for thread 12, which sleeps, each on words of its own; and for work.
    fn monitor(function: &str) -> Run {
        let mut run = RunBuilder::new().thread(12, 10, &[(FUTEX, SECOND)]);
        for tid in 10..12 {
            let mut kept = interval(tid, FUTEX, 0, SECOND, Some(12));
            (kept.user_stack, kept.object) = (Some(user_stack(function).id), u64::from(tid));
            let sum = WaitSum {
                waiter_tid: tid,
                waker_tid: 12,
                waker_tgid: 10,
                ends: [(ChainEnd::Timer, SECOND)].into(),
                ..wait(10, FUTEX, u64::from(tid), 10, SECOND)
            };
            let idle = wait(10, FUTEX, 0x99, 1, SECOND);
            run = run.thread(tid, 10, &[(FUTEX, 2 * SECOND)]).kept(kept).wait(sum).wait(idle);
        }
        let mut run = run.build();
        let stack = user_stack(function);
        run.stacks.insert(stack.id, stack);
        run
    }

    #[test]
    fn a_monitor_is_a_lock_whoever_has_it() {
        let run = monitor("ObjectMonitor::enter(JavaThread*)");
        let case = Case::new(&run);
        let [lock] = &case.locks[..] else { panic!("{:#?}", case.locks) };
        assert_eq!((lock.parked, lock.lost_ns()), (2, 2 * SECOND));
        assert_eq!(case.lost.get(FUTEX), 2 * SECOND);
        let found = crate::explain(&run);
        assert_eq!(found.findings[0].cause, "futex-convoy");
        assert!(
            found.findings[0].title.contains("2 threads wait for in ObjectMonitor::enter"),
            "{found:?}"
        );
        let shown = format!("{:?}", found.findings[0].evidence);
        assert!(shown.contains("ObjectMonitor::enter"), "{shown}");
        assert!(Case::new(&monitor("Unsafe_Park")).locks.is_empty());
    }

    /// A row that a transaction has: threads sleep on words of their own, and with a doubt.
    #[test]
    fn a_lock_of_a_transaction_is_one_with_a_doubt() {
        let doubts = |function: &str| {
            let found = crate::explain(&monitor(function));
            assert_eq!(found.findings[0].cause, "futex-convoy", "{function}");
            found.findings[0].doubts.iter().any(|doubt| doubt.contains("GET_LOCK"))
        };
        assert!(doubts("lock_wait(que_thr_t*)"));
        assert!(doubts("MDL_context::acquire_lock(MDL_request*, double)"));
        assert!(!doubts("ObjectMonitor::enter(JavaThread*)"));
    }

    #[test]
    fn a_word_on_which_several_wait_is_a_lock_of_its_own() {
        let mut run = monitor("___pthread_rwlock_rdlock");
        run.sums.waits.iter_mut().for_each(|wait| wait.object = 0x50);
        run.outliers.iter_mut().for_each(|wait| wait.object = 0x50);
        let case = Case::new(&run);
        let [lock] = &case.locks[..] else { panic!("{:#?}", case.locks) };
        assert_eq!((lock.parked, lock.address, lock.lost_ns()), (0, 0x50, 2 * SECOND));
    }
}
