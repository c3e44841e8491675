//! Which time is lost: what a thread did not choose to spend.

use std::collections::BTreeMap;

use model::{Account, Blocked, Run, WaitSum, part_of};

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

/// The class of an account. Futex waits are idle here: those on words that behave like a contended
/// lock are taken out by [`lock_words`].
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

/// A futex word that behaves like a contended lock: all waits of one process on it.
#[derive(Clone, Debug)]
pub struct LockWord {
    /// Process.
    pub tgid: u32,
    /// Address of the word.
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
    /// Waits for the value that means "locked, and others wait".
    pub lock_like: u64,
}

impl LockWord {
    /// At least half of the waits show a lock, by their value or by being handed on.
    fn is_lock(&self) -> bool {
        self.lock_waits() >= self.count.div_ceil(2)
    }

    /// Waits that show a lock, by the stronger of the two signs; at most `count`.
    fn lock_waits(&self) -> u64 {
        self.lock_like.max(self.by_waiter).min(self.count)
    }

    /// The part of `ns` that was waiting for a lock.
    pub fn lost_ns(&self) -> u64 {
        part_of(self.ns, self.lock_waits(), self.count)
    }

    fn add(&mut self, wait: &WaitSum) {
        self.count = self.count.saturating_add(wait.count);
        self.ns = self.ns.saturating_add(wait.ns);
        self.max_ns = self.max_ns.max(wait.max_ns);
        self.by_waiter = self.by_waiter.saturating_add(wait.by_waiter);
        self.lock_like = self.lock_like.saturating_add(wait.lock_like);
        if self.name.is_none() {
            self.name = wait.name.as_ref().map(|name| name.as_str().to_owned());
        }
    }
}

/// The futex words of the run that are locks, the longest first.
pub fn lock_words(run: &Run) -> Vec<LockWord> {
    let mut words = BTreeMap::<(u32, u64), LockWord>::new();
    for wait in run.sums.waits.iter().filter(|w| w.account == Account::Blocked(Blocked::Futex)) {
        words
            .entry((wait.tgid, wait.object))
            .or_insert_with(|| LockWord {
                tgid: wait.tgid,
                address: wait.object,
                name: None,
                count: 0,
                ns: 0,
                max_ns: 0,
                by_waiter: 0,
                lock_like: 0,
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
