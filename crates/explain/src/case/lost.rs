//! Which time is lost: what a thread did not choose to spend.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, Run, WaitSum};

use crate::case::fetching::locks_to_fetch_work;
use crate::case::lock_word::LockWord;
use crate::case::named_locks::named_locks;
use crate::case::parking::parked;
use crate::case::purposes::Purposes;
use crate::case::safepoints::is_for_jvm;

/// What a nanosecond of an account means to the one who waits for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// On a CPU, for itself.
    Work,
    /// Waiting for something to do, or for a partner that was asked to do it.
    Idle,
    /// Neither working nor waiting for work.
    Lost,
    /// Not known.
    Unknown,
}

/// The class of an account. Waits for a futex or for an empty pipe are idle here: those on words, and
/// pipes, that behave like a contended lock are taken out by [`lock_words`]. So are waits for what others send: those for an answer are
/// taken out by [`answers`](crate::case::answers).
pub fn class(account: Account) -> Class {
    match account {
        Account::User | Account::Kernel | Account::Running | Account::Syscall(_) => Class::Work,
        Account::Spin
        | Account::HardIrq
        | Account::SoftIrq
        | Account::Stolen
        | Account::RunnableWakeup
        | Account::RunnablePreempted
        | Account::Throttled => Class::Lost,
        Account::Blocked(kind) => class_of_sleep(kind),
        Account::Unaccounted => Class::Unknown,
    }
}

fn class_of_sleep(kind: Blocked) -> Class {
    match kind {
        Blocked::Futex
        | Blocked::SocketReceive
        | Blocked::SocketAccept
        | Blocked::SocketConnect
        | Blocked::Poll
        | Blocked::PipeRead
        | Blocked::TimerSleep
        | Blocked::ChildWait
        | Blocked::Other => Class::Idle,
        Blocked::MmapLockRead
        | Blocked::MmapLockWrite
        | Blocked::Rwsem
        | Blocked::Mutex
        | Blocked::RtMutex
        | Blocked::OtherLock
        | Blocked::FaultMinor
        | Blocked::FaultMajor
        | Blocked::Disk
        | Blocked::DirtyThrottle
        | Blocked::SocketSend
        | Blocked::PipeWrite
        | Blocked::FileLock
        | Blocked::Stopped
        | Blocked::Uninterruptible => Class::Lost,
    }
}

/// In what a thread may wait for a lock that the kernel does not know as one, or for what another
/// thread hands to it.
pub const LOCK_ACCOUNTS: [Account; 3] = [
    Account::Blocked(Blocked::Futex),
    Account::Blocked(Blocked::PipeRead),
    Account::Blocked(Blocked::Other),
];

/// Waits for file locks.
pub const FILE_LOCK: Account = Account::Blocked(Blocked::FileLock);

/// The object of a wait for a set of System V semaphores is its number and this. Whatever else is in
/// the account of other sleeps, a terminal or a device, is no lock.
pub const SEMAPHORES: u64 = 1 << 32;

fn may_be_lock(wait: &WaitSum) -> bool {
    match wait.account {
        Account::Blocked(Blocked::Other) => wait.object & !u64::from(u32::MAX) == SEMAPHORES,
        account => LOCK_ACCOUNTS.contains(&account),
    }
}

/// The futex words, pipes and semaphores of the run that are locks, the longest first. Semaphores of
/// System V are one of the host, whichever process waits.
pub fn lock_words(run: &Run, purposes: &Purposes) -> Vec<LockWord> {
    let parked = parked(run);
    let fetching = locks_to_fetch_work(run, purposes);
    let (mut named, mut named_words) = named_locks(run, purposes);
    let is_parked = |tgid| parked.together.iter().any(|parked| parked.tgid == tgid);
    named.retain(|lock| lock.parked == 0 || !is_parked(lock.tgid));
    named_words.retain(|(tgid, _)| !is_parked(*tgid));
    named_words.extend(named.iter().map(|lock| (lock.tgid, lock.address)));
    let by_chance = locks_by_chance(run);
    let barriers = purposes.barriers();
    let mut words = parked.together;
    words.extend(
        words_of(run)
            .into_iter()
            .filter(|word| !named_words.contains(&(word.tgid, word.address)))
            .filter(|word| !parked.words.contains(&(word.tgid, word.address)))
            .filter(|word| !fetching.contains(&(word.tgid, word.address)))
            .filter(|word| !barriers.contains(&(word.tgid, word.address)))
            .filter(|word| word.is_lock() && !by_chance.contains(&(word.tgid, word.address))),
    );
    words.extend(named);
    words.sort_by_key(|word| std::cmp::Reverse(word.lost_ns()));
    words
}

/// Words at which one thread sleeps all the time, and of which nothing but the value says that they are
/// locks: a counter has that value, too, when a runtime has let a thread go on twice before (condition
/// variables of Rust). A lock that names the thread which has it is one; and where two threads sleep so,
/// each at a word, they may have what the other one wants.
fn locks_by_chance(run: &Run) -> BTreeSet<(u32, u64)> {
    let is_owner = |tgid, tid| run.threads.iter().any(|t| (t.tid, t.tgid) == (tid, tgid));
    let mut lone = BTreeMap::<u32, Vec<u64>>::new();
    for word in words_of(run) {
        let has_owner = word.ends.owner().is_some_and(|tid| is_owner(word.tgid, tid));
        if word.is_never_let_go() && word.count == 1 && word.is_lock() && !has_owner {
            lone.entry(word.tgid).or_default().push(word.address);
        }
    }
    let lone = lone.into_iter().filter(|(_, words)| words.len() == 1);
    lone.flat_map(|(tgid, words)| words.into_iter().map(move |word| (tgid, word))).collect()
}

/// Waits for files that whoever has them locked waits for work with, by process: of idle servers each of
/// which is to accept a connection in its turn.
pub fn file_locks_for_work(run: &Run) -> BTreeMap<u32, u64> {
    let waits = || run.sums.waits.iter().filter(|wait| wait.account == FILE_LOCK);
    let mut files = BTreeMap::<u64, LockWord>::new();
    for wait in waits().filter(|wait| wait.object != 0) {
        let file = files.entry(wait.object);
        file.or_insert_with(|| LockWord::new(0, FILE_LOCK, wait.object)).add(wait);
    }
    let mut idle = BTreeMap::<u32, u64>::new();
    for wait in waits().filter(|wait| files.get(&wait.object).is_some_and(LockWord::is_for_work)) {
        let sum = idle.entry(wait.tgid).or_default();
        *sum = sum.saturating_add(wait.ns);
    }
    idle
}

/// All futex words, pipes and semaphores that were waited for.
pub(super) fn words_of(run: &Run) -> Vec<LockWord> {
    let mut words = BTreeMap::<(u32, Account, u64), LockWord>::new();
    let waits = run.sums.waits.iter().filter(|wait| may_be_lock(wait) && !is_for_jvm(wait));
    for wait in waits {
        words
            .entry((wait.tgid, wait.account, wait.object))
            .or_insert_with(|| LockWord::new(wait.tgid, wait.account, wait.object))
            .add(wait);
    }
    words.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::barriers::barriers;
    use crate::testing::{FUTEX, RunBuilder, wait};
    use model::ChainEnd;

    fn words(lock_like: u64, by_waiter: u64) -> Vec<LockWord> {
        let sum = WaitSum { lock_like, by_waiter, ..wait(1, FUTEX, 0x10, 100, 1000) };
        lock_words(&RunBuilder::new().wait(sum).build(), &Purposes::default())
    }

    #[test]
    fn either_sign_makes_a_lock_and_its_share_is_lost() {
        assert_eq!(words(100, 0)[0].lost_ns(), 1000);
        assert_eq!(words(0, 60)[0].lost_ns(), 600);
        // The rest was ended by threads that had not had to wait.
        assert_eq!(words(0, 80)[0].lost_ns(), 1000);
        assert_eq!(words(50, 0)[0].lost_ns(), 500);
    }

    #[test]
    fn a_word_waited_on_for_work_is_no_lock() {
        assert!(words(0, 0).is_empty());
        assert!(words(20, 49).is_empty());
    }

    #[test]
    fn a_barrier_is_no_lock_though_who_ends_its_waits_has_waited_there() {
        let barrier = |many| WaitSum {
            waker_tgid: 1,
            by_waiter: 100,
            many,
            ends: [(ChainEnd::Cpu, 1000)].into(),
            ..wait(1, FUTEX, 0x10, 100, 1000)
        };
        let run = RunBuilder::new().wait(barrier(50)).build();
        assert!(lock_words(&run, &Purposes::default()).is_empty());
        assert_eq!(barriers(&run).len(), 1);
        assert_eq!(
            lock_words(&RunBuilder::new().wait(barrier(5)).build(), &Purposes::default()).len(),
            1
        );
    }

    #[test]
    fn who_looks_whether_it_is_its_turn_and_waits_on_is_at_no_barrier() {
        let tickets = |again| WaitSum {
            waker_tgid: 1,
            by_waiter: 100,
            many: 75,
            again,
            ends: [(ChainEnd::Timer, 1000)].into(),
            ..wait(1, FUTEX, 0x10, 100, 1000)
        };
        for again in [74, 50] {
            let run = RunBuilder::new().wait(tickets(again)).build();
            assert_eq!(lock_words(&run, &Purposes::default())[0].lost_ns(), 1000);
            assert!(barriers(&run).is_empty());
        }
        // Rounds of a barrier may be short: the next one begins before all have gone on.
        let run = RunBuilder::new().wait(tickets(20)).build();
        assert!(lock_words(&run, &Purposes::default()).is_empty());
        assert_eq!(barriers(&run).len(), 1);
    }

    #[test]
    fn waits_that_time_out_are_for_the_same_lock() {
        let turns = WaitSum {
            waker_tgid: 1,
            by_waiter: 10,
            ends: [(ChainEnd::Cpu, 50)].into(),
            ..wait(1, FUTEX, 0x10, 10, 50)
        };
        let timeouts =
            WaitSum { ends: [(ChainEnd::Timer, 950)].into(), ..wait(1, FUTEX, 0x10, 90, 950) };
        let run = RunBuilder::new().wait(turns).wait(timeouts.clone()).build();
        let [word] = &lock_words(&run, &Purposes::default())[..] else { panic!("one word") };
        assert_eq!(word.lost_ns(), 1000);
        assert_eq!(
            word.ends.main(),
            Some(ChainEnd::Cpu),
            "a timeout is nothing that the holder did"
        );
        assert!(
            lock_words(&RunBuilder::new().wait(timeouts).build(), &Purposes::default()).is_empty()
        );
    }

    #[test]
    fn a_pipe_with_a_token_is_a_lock_but_for_what_comes_from_outside() {
        let token = |ends: &[(ChainEnd, u64)]| WaitSum {
            by_waiter: 90,
            waker_tgid: 1,
            ends: ends.iter().copied().collect(),
            ..wait(1, Account::Blocked(Blocked::PipeRead), 7, 100, 1000)
        };
        let lost = |ends: &[(ChainEnd, u64)]| {
            lock_words(&RunBuilder::new().wait(token(ends)).build(), &Purposes::default())[0]
                .lost_ns()
        };
        assert_eq!(lost(&[(ChainEnd::Timer, 1000)]), 1000);
        assert_eq!(lost(&[(ChainEnd::Cpu, 100), (ChainEnd::Outside, 900)]), 100);
        assert_eq!(lost(&[(ChainEnd::Timer, 700), (ChainEnd::Unknown, 300)]), 1000);
        // It may have been all that time without work.
        assert_eq!(lost(&[(ChainEnd::Timer, 300), (ChainEnd::Unknown, 700)]), 300);
    }

    /// A pool of processes that read a queue in turn, each with its lock in hand.
    #[test]
    fn a_lock_with_which_whoever_has_it_waits_for_work_is_none() {
        let turns = |idle_turn_ns| WaitSum {
            waker_tgid: 1,
            by_waiter: 100,
            lock_like: 100,
            turns: 10,
            turn_ns: 50,
            idle_turn_ns,
            ends: [(ChainEnd::Timer, 1000)].into(),
            ..wait(1, FUTEX, 0x10, 100, 1000)
        };
        let locks = |idle| {
            lock_words(&RunBuilder::new().wait(turns(idle)).build(), &Purposes::default()).len()
        };
        assert_eq!((locks(50), locks(45), locks(44), locks(0)), (0, 0, 1, 1));
    }

    #[test]
    fn a_thread_that_sleeps_on_in_a_word_without_an_owner_is_at_no_lock() {
        let locks = |waits, owner| {
            let sum = WaitSum {
                lock_like: waits,
                open: waits,
                ends: [(ChainEnd::Unknown, 1000)].into(),
                longest_end: Some((owner, ChainEnd::Unknown)),
                ..wait(1, FUTEX, 0x10, waits, 1000)
            };
            lock_words(
                &RunBuilder::new().thread(11, 1, &[]).wait(sum).build(),
                &Purposes::default(),
            )
            .len()
        };
        assert_eq!((locks(1, 0), locks(1, 12)), (0, 0), "parked since it was let go on twice");
        assert_eq!((locks(1, 11), locks(2, 0)), (1, 1));
        let stuck = |object| WaitSum {
            lock_like: 1,
            open: 1,
            ends: [(ChainEnd::Unknown, 1000)].into(),
            ..wait(1, FUTEX, object, 1, 1000)
        };
        let run = RunBuilder::new().wait(stuck(0x10)).wait(stuck(0x20)).build();
        assert_eq!(lock_words(&run, &Purposes::default()).len(), 2, "a deadlock");
    }

    #[test]
    fn semaphores_are_locks_and_other_objects_of_their_account_are_none() {
        let turns = |object| WaitSum {
            waker_tgid: 1,
            by_waiter: 100,
            ends: [(ChainEnd::Timer, 1000)].into(),
            ..wait(1, Account::Blocked(Blocked::Other), object, 100, 1000)
        };
        let locks = |object| {
            lock_words(&RunBuilder::new().wait(turns(object)).build(), &Purposes::default()).len()
        };
        assert_eq!((locks(SEMAPHORES | 7), locks(7), locks(0)), (1, 0, 0));
    }

    #[test]
    fn wakers_of_one_word_are_taken_together() {
        let from = |waker_tgid, lock_like| WaitSum {
            waker_tgid,
            lock_like,
            ..wait(1, FUTEX, 0x10, 100, 1000)
        };
        let run = RunBuilder::new().wait(from(1, 100)).wait(from(0, 20)).build();
        assert_eq!(lock_words(&run, &Purposes::default())[0].lost_ns(), 1200);
    }

    #[test]
    fn waiting_for_work_is_idle_and_waiting_for_a_resource_is_lost() {
        for kind in [Blocked::Poll, Blocked::SocketAccept, Blocked::TimerSleep, Blocked::Futex] {
            assert_eq!(class(Account::Blocked(kind)), Class::Idle, "{kind:?}");
        }
        for kind in [Blocked::PipeWrite, Blocked::MmapLockWrite, Blocked::FaultMajor] {
            assert_eq!(class(Account::Blocked(kind)), Class::Lost, "{kind:?}");
        }
        assert_eq!(class(Account::RunnablePreempted), Class::Lost);
        assert_eq!(class(Account::User), Class::Work);
    }
}
