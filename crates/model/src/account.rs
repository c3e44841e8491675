//! Where a thread's wall time went: each nanosecond in exactly one account.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Syscall;

/// What a thread was doing with a nanosecond of its wall time.
///
/// The text form (`running:user`, `running:mmap`, `blocked:lock:mmap_lock:write`) is the same on
/// the command line, in JSON and in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS), ts(type = "string"))]
#[serde(into = "String", try_from = "String")]
pub enum Account {
    /// On a CPU in user mode. On-CPU time of page faults is in here too: the kernel offers no
    /// tracepoint at the end of a fault.
    User,
    /// On a CPU in the kernel, in this system call.
    Syscall(Syscall),
    /// On a CPU in the kernel outside any system call: a kernel thread, or a thread that exits.
    Kernel,
    /// On a CPU, user or kernel not known: the system call probes are off, or the state was
    /// sampled from /proc.
    Running,
    /// On a CPU, spinning for a contended kernel spinlock.
    Spin,
    /// The thread's CPU served a hardware interrupt or inter-processor interrupt meanwhile.
    HardIrq,
    /// The thread's CPU served softirqs meanwhile (its own, too: loopback packets it sends).
    SoftIrq,
    /// The hypervisor ran something else, by the steal clock of the CPU the thread was on.
    Stolen,
    /// Woken, waiting for a CPU.
    RunnableWakeup,
    /// Preempted or yielded, waiting for a CPU.
    RunnablePreempted,
    /// Taken off the CPU because its cgroup's CPU quota was used up.
    Throttled,
    /// Asleep until something happens.
    Blocked(Blocked),
    /// Not known: before the thread's first event, or a state that could not be read.
    Unaccounted,
}

/// What a sleeping thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Blocked {
    /// A futex: a user-space lock, condition or join.
    Futex,
    /// mmap_lock of an address space, to read it (page faults, /proc readers).
    MmapLockRead,
    /// mmap_lock of an address space, to change it (mmap, munmap, brk, mprotect ...).
    MmapLockWrite,
    /// Another kernel reader-writer semaphore.
    Rwsem,
    /// A kernel mutex.
    Mutex,
    /// A kernel rt_mutex (priority-inheritance futexes among them).
    RtMutex,
    /// A kernel lock of another kind (per-CPU rwsem, unknown flags).
    OtherLock,
    /// A page fault that slept without waiting for a disk.
    FaultMinor,
    /// A page fault that waited for a disk.
    FaultMajor,
    /// Disk, in a system call.
    Disk,
    /// Paused by the kernel because too much dirty page cache waits for writeback.
    DirtyThrottle,
    /// Data to arrive on a socket.
    SocketReceive,
    /// Room in a socket's send buffer.
    SocketSend,
    /// A connection to accept.
    SocketAccept,
    /// A connection to be established.
    SocketConnect,
    /// poll, select or epoll.
    Poll,
    /// Data in a pipe.
    PipeRead,
    /// Room in a pipe.
    PipeWrite,
    /// A timer the thread set itself: nanosleep, timerfd.
    TimerSleep,
    /// A child to change state.
    ChildWait,
    /// flock or fcntl record lock.
    FileLock,
    /// Stopped by a signal, frozen, or held by a tracer.
    Stopped,
    /// Something else, interruptibly (message queue, signal, terminal, completion ring ...).
    Other,
    /// Something else, uninterruptibly (state D).
    Uninterruptible,
}

impl Blocked {
    /// Every kind, in the order in which they are declared.
    pub const ALL: [Blocked; 24] = [
        Blocked::Futex,
        Blocked::MmapLockRead,
        Blocked::MmapLockWrite,
        Blocked::Rwsem,
        Blocked::Mutex,
        Blocked::RtMutex,
        Blocked::OtherLock,
        Blocked::FaultMinor,
        Blocked::FaultMajor,
        Blocked::Disk,
        Blocked::DirtyThrottle,
        Blocked::SocketReceive,
        Blocked::SocketSend,
        Blocked::SocketAccept,
        Blocked::SocketConnect,
        Blocked::Poll,
        Blocked::PipeRead,
        Blocked::PipeWrite,
        Blocked::TimerSleep,
        Blocked::ChildWait,
        Blocked::FileLock,
        Blocked::Stopped,
        Blocked::Other,
        Blocked::Uninterruptible,
    ];

    /// The part of the account's name after `blocked:`.
    pub fn name(self) -> &'static str {
        match self {
            Blocked::Futex => "futex",
            Blocked::MmapLockRead => "lock:mmap_lock:read",
            Blocked::MmapLockWrite => "lock:mmap_lock:write",
            Blocked::Rwsem => "lock:rwsem",
            Blocked::Mutex => "lock:mutex",
            Blocked::RtMutex => "lock:rt_mutex",
            Blocked::OtherLock => "lock:other",
            Blocked::FaultMinor => "page_fault:minor",
            Blocked::FaultMajor => "page_fault:major",
            Blocked::Disk => "disk",
            Blocked::DirtyThrottle => "dirty_throttle",
            Blocked::SocketReceive => "socket:receive",
            Blocked::SocketSend => "socket:send",
            Blocked::SocketAccept => "socket:accept",
            Blocked::SocketConnect => "socket:connect",
            Blocked::Poll => "poll",
            Blocked::PipeRead => "pipe:read",
            Blocked::PipeWrite => "pipe:write",
            Blocked::TimerSleep => "timer",
            Blocked::ChildWait => "child",
            Blocked::FileLock => "file_lock",
            Blocked::Stopped => "stopped",
            Blocked::Other => "other",
            Blocked::Uninterruptible => "uninterruptible",
        }
    }

    /// A kernel lock of any kind.
    pub fn is_kernel_lock(self) -> bool {
        matches!(
            self,
            Blocked::MmapLockRead
                | Blocked::MmapLockWrite
                | Blocked::Rwsem
                | Blocked::Mutex
                | Blocked::RtMutex
                | Blocked::OtherLock
        )
    }
}

impl FromStr for Blocked {
    type Err = ParseAccountError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let kind = Blocked::ALL.into_iter().find(|kind| kind.name() == s);
        kind.ok_or_else(|| ParseAccountError(s.to_owned()))
    }
}

impl From<Blocked> for String {
    fn from(kind: Blocked) -> String {
        kind.name().to_owned()
    }
}

impl TryFrom<String> for Blocked {
    type Error = ParseAccountError;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

/// A text that names no account.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no account")]
pub struct ParseAccountError(String);

impl Account {
    /// On a CPU, working for the thread itself.
    pub fn is_running(self) -> bool {
        matches!(
            self,
            Account::User
                | Account::Syscall(_)
                | Account::Kernel
                | Account::Running
                | Account::Spin
        )
    }

    /// On a run queue, be it since a wakeup or a preemption.
    pub fn is_runnable(self) -> bool {
        matches!(self, Account::RunnableWakeup | Account::RunnablePreempted)
    }

    /// Runnable or throttled: ready to run, not on a CPU.
    pub fn is_waiting_for_cpu(self) -> bool {
        self.is_runnable() || self == Account::Throttled
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::User => f.write_str("running:user"),
            Account::Syscall(call) => write!(f, "running:{call}"),
            Account::Kernel => f.write_str("running:kernel"),
            Account::Running => f.write_str("running"),
            Account::Spin => f.write_str("running:spinlock"),
            Account::HardIrq => f.write_str("hard_irq"),
            Account::SoftIrq => f.write_str("softirq"),
            Account::Stolen => f.write_str("stolen"),
            Account::RunnableWakeup => f.write_str("runnable:wakeup"),
            Account::RunnablePreempted => f.write_str("runnable:preempted"),
            Account::Throttled => f.write_str("throttled"),
            Account::Blocked(kind) => write!(f, "blocked:{}", kind.name()),
            Account::Unaccounted => f.write_str("unaccounted"),
        }
    }
}

impl FromStr for Account {
    type Err = ParseAccountError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseAccountError(s.to_owned());
        Ok(match s {
            "running:user" => Account::User,
            "running:kernel" => Account::Kernel,
            "running" => Account::Running,
            "running:spinlock" => Account::Spin,
            "hard_irq" => Account::HardIrq,
            "softirq" => Account::SoftIrq,
            "stolen" => Account::Stolen,
            "runnable:wakeup" => Account::RunnableWakeup,
            "runnable:preempted" => Account::RunnablePreempted,
            "throttled" => Account::Throttled,
            "unaccounted" => Account::Unaccounted,
            _ => {
                if let Some(name) = s.strip_prefix("running:") {
                    Account::Syscall(name.parse().map_err(|_| unknown())?)
                } else if let Some(name) = s.strip_prefix("blocked:") {
                    Account::Blocked(name.parse().map_err(|_| unknown())?)
                } else {
                    return Err(unknown());
                }
            }
        })
    }
}

impl From<Account> for String {
    fn from(account: Account) -> String {
        account.to_string()
    }
}

impl TryFrom<String> for Account {
    type Error = ParseAccountError;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

/// Nanoseconds by account. The sum of all entries is the wall time they cover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accounts(BTreeMap<Account, u64>);

impl Accounts {
    /// No time in any account.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `ns` to `account`; nothing is kept for 0. Like all sums here it stops at `u64::MAX`.
    pub fn add(&mut self, account: Account, ns: u64) {
        if ns > 0 {
            let sum = self.0.entry(account).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// Adds every entry of `other`.
    pub fn merge(&mut self, other: &Accounts) {
        for (account, ns) in other.iter() {
            self.add(account, ns);
        }
    }

    /// Nanoseconds in `account`.
    pub fn get(&self, account: Account) -> u64 {
        self.0.get(&account).copied().unwrap_or(0)
    }

    /// Nanoseconds in all accounts that `which` accepts.
    pub fn sum_of(&self, which: impl Fn(Account) -> bool) -> u64 {
        self.iter()
            .filter(|(account, _)| which(*account))
            .fold(0, |sum, (_, ns)| sum.saturating_add(ns))
    }

    /// Nanoseconds in all accounts: the wall time.
    pub fn total(&self) -> u64 {
        self.sum_of(|_| true)
    }

    /// The entries in account order.
    pub fn iter(&self) -> impl Iterator<Item = (Account, u64)> + '_ {
        self.0.iter().map(|(account, ns)| (*account, *ns))
    }

    /// The entries, largest first.
    pub fn largest_first(&self) -> Vec<(Account, u64)> {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        entries
    }
}

impl FromIterator<(Account, u64)> for Accounts {
    fn from_iter<I: IntoIterator<Item = (Account, u64)>>(entries: I) -> Self {
        let mut accounts = Accounts::new();
        for (account, ns) in entries {
            accounts.add(account, ns);
        }
        accounts
    }
}

/// `ns * part / whole` rounded down: what falls to a part when time is spread evenly. Nothing of an
/// empty whole; at most `ns`, as `part` is taken as `whole` where it is larger.
pub fn part_of(ns: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    (u128::from(ns) * u128::from(part.min(whole)) / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_account_survives_its_text_form() {
        let mut all = vec![
            Account::User,
            Account::Kernel,
            Account::Running,
            Account::Spin,
            Account::HardIrq,
            Account::SoftIrq,
            Account::Stolen,
            Account::RunnableWakeup,
            Account::RunnablePreempted,
            Account::Throttled,
            Account::Unaccounted,
        ];
        all.extend(Blocked::ALL.map(Account::Blocked));
        all.extend((0..500).map(|n| Account::Syscall(Syscall(n))));
        for account in all {
            assert_eq!(account.to_string().parse::<Account>().unwrap(), account);
        }
        assert!("blocked:nothing".parse::<Account>().is_err());
    }

    #[test]
    fn merging_keeps_the_sum() {
        let mut a: Accounts = [(Account::User, 5), (Account::Stolen, 7)].into_iter().collect();
        let b: Accounts = [(Account::User, 1), (Account::HardIrq, 2)].into_iter().collect();
        a.merge(&b);
        assert_eq!(a.total(), 15);
        assert_eq!(a.largest_first()[0], (Account::Stolen, 7));
    }

    #[test]
    fn a_part_of_a_time_is_rounded_down_and_never_more_than_the_time() {
        assert_eq!(part_of(100, 1, 3), 33);
        assert_eq!(part_of(100, 5, 3), 100);
        assert_eq!(part_of(100, 1, 0), 0);
        assert_eq!(part_of(u64::MAX, u64::MAX - 1, u64::MAX), u64::MAX - 1);
    }
}
