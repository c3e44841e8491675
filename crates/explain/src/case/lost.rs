//! Which time is lost: what a thread did not choose to spend.

use std::collections::BTreeMap;

use model::{Account, Blocked, ChainEnd, Run, WaitSum, part_of};

use crate::case::chain_ends::ChainEnds;

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

/// A futex word, or a pipe with a token in it, that behaves like a contended lock: all waits of one
/// process on it.
#[derive(Clone, Debug)]
pub struct LockWord {
    /// Process.
    pub tgid: u32,
    /// In what it is waited for.
    pub account: Account,
    /// Address of the word, inode of the pipe.
    pub address: u64,
    /// Name of the lock, if one was found.
    pub name: Option<String>,
    /// Waits.
    pub count: u64,
    /// Time asleep in them.
    pub ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Waits ended by a thread that had last waited here itself.
    pub by_waiter: u64,
    /// Waits whose waker had just ended another one here.
    pub many: u64,
    /// Waits that a thread ended, and no timeout.
    pub by_thread: u64,
    /// Waits for the value that means "locked, and others wait".
    pub lock_like: u64,
    /// Waits that had not ended when recording stopped.
    pub open: u64,
    /// By what the one did meanwhile that had the lock.
    pub ends: ChainEnds,
}

impl LockWord {
    /// At least half of the waits show a lock by their value, or of those that a thread ended at
    /// least half by being handed on.
    fn is_lock(&self) -> bool {
        self.has_lock_value() || self.is_handed_on()
    }

    fn has_lock_value(&self) -> bool {
        self.count > 0 && self.lock_like >= self.count.div_ceil(2)
    }

    fn is_handed_on(&self) -> bool {
        self.by_thread > 0
            && self.by_waiter >= self.by_thread.div_ceil(2)
            && self.many.saturating_mul(BARRIER) < self.by_thread
    }

    /// The part of `ns` that was waiting for a lock. Where only who ended the waits shows that, it
    /// may be work that threads give each other: then time counts only if a recorded thread was at
    /// the end of it, not if all waited for something from outside.
    pub fn lost_ns(&self) -> u64 {
        let by_value = part_of(self.ns, self.lock_like, self.count);
        if !self.is_handed_on() {
            return by_value;
        }
        let handed_on = part_of(self.ns, self.by_waiter, self.by_thread);
        match self.ends.total() {
            0 => by_value.max(handed_on),
            _ => by_value.max(self.ends.part_of(handed_on, ChainEnd::is_recorded)),
        }
    }

    fn add(&mut self, wait: &WaitSum) {
        self.count = self.count.saturating_add(wait.count);
        self.ns = self.ns.saturating_add(wait.ns);
        self.max_ns = self.max_ns.max(wait.max_ns);
        // Before waits had ends, those that a timeout ended were not told apart.
        if wait.waker_tgid != 0 || wait.ends.is_empty() {
            self.by_thread = self.by_thread.saturating_add(wait.count);
        }
        self.by_waiter = self.by_waiter.saturating_add(wait.by_waiter);
        self.lock_like = self.lock_like.saturating_add(wait.lock_like);
        self.many = self.many.saturating_add(wait.many);
        self.open = self.open.saturating_add(wait.open);
        self.ends.add(wait);
        if self.name.is_none() {
            self.name = wait.name.as_ref().map(|name| name.as_str().to_owned());
        }
    }
}

/// One in so many waits ended together with another: at a barrier of three threads it is every
/// second, of more it is more.
const BARRIER: u64 = 3;

/// In what a thread may wait for a lock that the kernel does not know as one.
pub const LOCK_ACCOUNTS: [Account; 2] =
    [Account::Blocked(Blocked::Futex), Account::Blocked(Blocked::PipeRead)];

/// The futex words and pipes of the run that are locks, the longest first.
pub fn lock_words(run: &Run) -> Vec<LockWord> {
    let mut words = BTreeMap::<(u32, Account, u64), LockWord>::new();
    for wait in run.sums.waits.iter().filter(|w| LOCK_ACCOUNTS.contains(&w.account)) {
        words
            .entry((wait.tgid, wait.account, wait.object))
            .or_insert_with(|| LockWord {
                tgid: wait.tgid,
                account: wait.account,
                address: wait.object,
                name: None,
                count: 0,
                ns: 0,
                max_ns: 0,
                by_waiter: 0,
                many: 0,
                by_thread: 0,
                lock_like: 0,
                open: 0,
                ends: ChainEnds::default(),
            })
            .add(wait);
    }
    let mut locks: Vec<_> = words.into_values().filter(LockWord::is_lock).collect();
    locks.sort_by_key(|word| std::cmp::Reverse(word.lost_ns()));
    locks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, wait};

    fn words(lock_like: u64, by_waiter: u64) -> Vec<LockWord> {
        let sum = WaitSum { lock_like, by_waiter, ..wait(1, FUTEX, 0x10, 100, 1000) };
        lock_words(&RunBuilder::new().wait(sum).build())
    }

    #[test]
    fn either_sign_makes_a_lock_and_its_share_is_lost() {
        assert_eq!(words(100, 0)[0].lost_ns(), 1000);
        assert_eq!(words(0, 80)[0].lost_ns(), 800);
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
        assert!(lock_words(&RunBuilder::new().wait(barrier(50)).build()).is_empty());
        assert_eq!(lock_words(&RunBuilder::new().wait(barrier(5)).build()).len(), 1);
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
        assert_eq!(lock_words(&run)[0].lost_ns(), 1000);
        assert!(lock_words(&RunBuilder::new().wait(timeouts).build()).is_empty());
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
            lock_words(&RunBuilder::new().wait(token(ends)).build())[0].lost_ns()
        };
        assert_eq!(lost(&[(ChainEnd::Timer, 1000)]), 900);
        assert_eq!(lost(&[(ChainEnd::Cpu, 100), (ChainEnd::Outside, 900)]), 90);
    }

    #[test]
    fn wakers_of_one_word_are_taken_together() {
        let from = |waker_tgid, lock_like| WaitSum {
            waker_tgid,
            lock_like,
            ..wait(1, FUTEX, 0x10, 100, 1000)
        };
        let run = RunBuilder::new().wait(from(1, 100)).wait(from(0, 20)).build();
        assert_eq!(lock_words(&run)[0].lost_ns(), 1200);
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
