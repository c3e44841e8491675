//! Complete sums (not only of outliers) of who waited for what, and because of whom.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Account, Blocked, ChainEnd, StackId, Sum, Syscall};

/// All waits of a process on one object that one process ended, divided by what was at the end of
/// the chain. Of what may be waits for work (poll, accept, receive, an empty pipe, a timer, a child)
/// all objects are summed together; older runs do not have them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WaitSumText")]
pub struct WaitSum {
    /// Process that waited.
    pub tgid: u32,
    /// What kind of wait.
    pub account: Account,
    /// The object as a number: futex word's address, lock's address or the code that takes it,
    /// inode number of a pipe or socket, faulting address rounded down to 2 MiB; 0 if none.
    pub object: u64,
    /// The object's name, if one was found.
    pub name: Option<ObjectName>,
    /// Process that ended the waits; 0 when an interrupt did or when it is not known.
    pub waker_tgid: u32,
    /// Name of the waker when last seen.
    pub waker_comm: String,
    /// Waits.
    pub count: u64,
    /// True if they were for the answer to what the thread had sent on that socket before.
    pub asked: bool,
    /// Time asleep, run queue not included.
    pub ns: u64,
    /// Longest wait.
    pub max_ns: u64,
    /// Waits ended by a thread whose own last wait was on the same object: the sign of a lock that
    /// is handed from waiter to waiter.
    pub by_waiter: u64,
    /// Waits that asked for a futex word known to mean a contended lock: FUTEX_WAIT for the
    /// value 2 (glibc, musl, Rust), or FUTEX_LOCK_PI.
    pub lock_like: u64,
    /// Waits whose waker had just ended another one on the same object: the sign of a barrier, or of a
    /// condition that is broadcast.
    pub many: u64,
    /// Waits that began right after another on the same object had ended: the thread had been woken
    /// to look whether it is its turn.
    pub again: u64,
    /// Waits ended by a thread that another one had woken in a futex, and that has not waited for
    /// work since: where each thread sleeps on a word of its own, the sign of a lock.
    pub by_parked: u64,
    /// The thread that alone has waited so; 0 if there were several, and in older runs.
    pub waiter_tid: u32,
    /// The thread that ended the last of them; 0 if none did, and in older runs.
    pub waker_tid: u32,
    /// Waits that had not ended when recording stopped, or when their process ended: nobody ended them.
    pub open: u64,
    /// Turns of a lock that were seen whole: whoever ended a wait here had ended one here itself, and
    /// the one that it woke had waited since then.
    pub turns: u64,
    /// How long they took, all together.
    pub turn_ns: u64,
    /// A thread that had handed nothing to anybody when it waited so: it began its life by waiting
    /// for work. And the thread that then ended the wait.
    pub began: Option<(u32, u32)>,
    /// The same time by what the one did meanwhile that was waited for, or that that one waited
    /// for. Sums to `ns`; empty in older runs.
    pub ends: BTreeMap<ChainEnd, u64>,
    /// Of the longest wait: the thread at the end of most of it, and what that one did. Of a wait for a
    /// lock that nobody ended ([`ChainEnd::Unknown`]), the thread that the lock names as its owner.
    pub longest_end: Option<(u32, ChainEnd)>,
}

impl WaitSum {
    /// The part with one of these ends.
    pub fn ends_in(&self, which: impl Fn(ChainEnd) -> bool) -> u64 {
        let ends = self.ends.iter().filter(|(end, _)| which(**end));
        ends.fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }
}

impl Sum for WaitSum {
    fn key(&self) -> impl Serialize {
        // As before there were waits for answers, for those that are none.
        let waker = u64::from(self.waker_tgid) | u64::from(self.asked) << 32;
        (self.tgid, self.account, self.object, waker)
    }

    fn amount(&self) -> u64 {
        self.ns
    }

    fn count(&self) -> u64 {
        self.count.max(self.by_waiter).max(self.lock_like).max(self.turns)
    }

    fn ns(&self) -> u64 {
        self.ns.max(self.max_ns).max(self.turn_ns)
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.waker_tgid)]
    }

    fn generalize(&mut self) {
        // A lock of the kernel is the same one for all.
        if !matches!(self.account, Account::Blocked(kind) if kind.is_kernel_lock()) {
            self.object = 0;
            self.name = None;
        }
    }

    fn add(&mut self, other: &Self) {
        if other.max_ns > self.max_ns {
            self.longest_end = other.longest_end;
        }
        for (end, ns) in &other.ends {
            let sum = self.ends.entry(*end).or_default();
            *sum = sum.saturating_add(*ns);
        }
        self.count = self.count.saturating_add(other.count);
        self.ns = self.ns.saturating_add(other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.by_waiter = self.by_waiter.saturating_add(other.by_waiter);
        self.lock_like = self.lock_like.saturating_add(other.lock_like);
        self.many = self.many.saturating_add(other.many);
        self.again = self.again.saturating_add(other.again);
        self.by_parked = self.by_parked.saturating_add(other.by_parked);
        if self.waiter_tid != other.waiter_tid {
            self.waiter_tid = 0;
        }
        if other.waker_tid != 0 {
            self.waker_tid = other.waker_tid;
        }
        self.open = self.open.saturating_add(other.open);
        self.turns = self.turns.saturating_add(other.turns);
        self.turn_ns = self.turn_ns.saturating_add(other.turn_ns);
        self.began = self.began.or(other.began);
    }
}

/// The name of what was waited for; exported as its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum ObjectName {
    /// Class of a lock of the kernel: `mmap_lock (write)`, `lock in ext4_file_write_iter`.
    LockClass(String),
    /// Path of the file behind a page that was missing.
    File(String),
    /// Memory that is no file's: `[heap]`, `[stack]`, `anonymous memory`.
    Anonymous(String),
}

impl ObjectName {
    /// Memory without a name.
    pub const ANONYMOUS: &str = "anonymous memory";

    /// Reads the text of an object that was waited for in this account.
    pub fn read(account: Account, text: String) -> ObjectName {
        match account {
            Account::Blocked(Blocked::FaultMajor | Blocked::FaultMinor) => {
                ObjectName::of_mapping(text)
            }
            _ => ObjectName::LockClass(text),
        }
    }

    /// From the last column of /proc/PID/maps.
    pub fn of_mapping(path: String) -> ObjectName {
        match path.as_str() {
            "" => ObjectName::Anonymous(Self::ANONYMOUS.to_owned()),
            text if text.starts_with('[') || text == Self::ANONYMOUS => ObjectName::Anonymous(path),
            _ => ObjectName::File(path),
        }
    }

    /// As shown.
    pub fn as_str(&self) -> &str {
        match self {
            ObjectName::LockClass(name) | ObjectName::File(name) | ObjectName::Anonymous(name) => {
                name
            }
        }
    }
}

impl From<ObjectName> for String {
    fn from(name: ObjectName) -> String {
        name.as_str().to_owned()
    }
}

/// A sum as it is exported: its name can only be read with its account.
#[derive(Deserialize)]
struct WaitSumText {
    tgid: u32,
    account: Account,
    object: u64,
    name: Option<String>,
    waker_tgid: u32,
    waker_comm: String,
    count: u64,
    ns: u64,
    max_ns: u64,
    by_waiter: u64,
    lock_like: u64,
    #[serde(default)]
    many: u64,
    #[serde(default)]
    again: u64,
    #[serde(default)]
    by_parked: u64,
    #[serde(default)]
    waiter_tid: u32,
    #[serde(default)]
    waker_tid: u32,
    #[serde(default)]
    open: u64,
    #[serde(default)]
    turns: u64,
    #[serde(default)]
    turn_ns: u64,
    #[serde(default)]
    began: Option<(u32, u32)>,
    #[serde(default)]
    asked: bool,
    #[serde(default)]
    ends: BTreeMap<ChainEnd, u64>,
    #[serde(default)]
    longest_end: Option<(u32, ChainEnd)>,
}

impl From<WaitSumText> for WaitSum {
    fn from(sum: WaitSumText) -> WaitSum {
        WaitSum {
            tgid: sum.tgid,
            account: sum.account,
            object: sum.object,
            name: sum.name.map(|name| ObjectName::read(sum.account, name)),
            waker_tgid: sum.waker_tgid,
            waker_comm: sum.waker_comm,
            count: sum.count,
            ns: sum.ns,
            max_ns: sum.max_ns,
            by_waiter: sum.by_waiter,
            lock_like: sum.lock_like,
            many: sum.many,
            again: sum.again,
            by_parked: sum.by_parked,
            waiter_tid: sum.waiter_tid,
            waker_tid: sum.waker_tid,
            open: sum.open,
            turns: sum.turns,
            turn_ns: sum.turn_ns,
            began: sum.began,
            asked: sum.asked,
            ends: sum.ends,
            longest_end: sum.longest_end,
        }
    }
}

/// Time that waiters for the mmap_lock of a process spent while one process held it in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldSum {
    /// Process whose address space it is, and whose threads waited.
    pub tgid: u32,
    /// True if the waiter wanted to write.
    pub waiter_write: bool,
    /// Process that held the lock.
    pub holder_tgid: u32,
    /// Name of the holder when last seen.
    pub holder_comm: String,
    /// True if it was held exclusively.
    pub holder_write: bool,
    /// The call in which it was held, if any.
    pub holder_call: Option<Syscall>,
    /// Waits that overlapped such holds.
    pub count: u64,
    /// The overlap.
    pub ns: u64,
    /// Longest single overlap.
    pub max_ns: u64,
}

impl Sum for HoldSum {
    fn key(&self) -> impl Serialize {
        let holder = (self.holder_tgid, &self.holder_comm, self.holder_write, self.holder_call);
        (self.tgid, self.waiter_write, holder)
    }

    fn amount(&self) -> u64 {
        self.ns
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn ns(&self) -> u64 {
        self.ns.max(self.max_ns)
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.holder_tgid)]
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.ns = self.ns.saturating_add(other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Time that a process had a CPU for which threads of another one, or others of its own, waited:
/// each wait is divided among those who ran in it. Its key is (tgid, runner_tgid, realtime).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerSum {
    /// Process that waited.
    pub tgid: u32,
    /// Process that ran on that CPU; 0: nobody did.
    pub runner_tgid: u32,
    /// Name of the last of its threads that did.
    pub runner_comm: String,
    /// Its priority when it ran, as in `ThreadAccounts::realtime`.
    pub realtime: u8,
    /// Times that one of its threads ran in such a wait.
    pub count: u64,
    /// How long they ran in it; in older recordings the whole of each wait in which they ran longest.
    pub ns: u64,
}

impl Sum for RunnerSum {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.runner_tgid, self.realtime)
    }

    fn amount(&self) -> u64 {
        self.ns
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn ns(&self) -> u64 {
        self.ns
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.runner_tgid)]
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// System calls of a process that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    /// Process.
    pub tgid: u32,
    /// The call.
    pub call: Syscall,
    /// Error number, positive: 11 is EAGAIN.
    pub errno: i32,
    /// How often.
    pub count: u64,
}

impl Sum for CallError {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.call, self.errno)
    }

    fn amount(&self) -> u64 {
        self.count
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn ns(&self) -> u64 {
        0
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), None]
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
    }
}

/// Waits of a process for spinlocks (10 us at least), by who was in a system call on another CPU
/// when they ended: whoever had the lock is among those, but several may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrentCall {
    /// Process that waited.
    pub tgid: u32,
    /// The other one.
    pub other_tgid: u32,
    /// Its name.
    pub other_comm: String,
    /// The call that it was in; if it was not in the kernel just then, its last one.
    pub other_call: Syscall,
    /// What it read.
    pub reads: TableRead,
    /// The stack of the waiter in the kernel.
    pub kernel: Option<StackId>,
    /// Waits.
    pub count: u64,
    /// Their time.
    pub ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Sum for ConcurrentCall {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.other_tgid, self.other_call, &self.reads, self.kernel)
    }

    fn amount(&self) -> u64 {
        self.ns
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn ns(&self) -> u64 {
        self.ns.max(self.max_ns)
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn stacks(&self) -> [Option<StackId>; 2] {
        [self.kernel, None]
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.other_tgid)]
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.ns = self.ns.saturating_add(other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// What a call reads that walks through tables of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableRead {
    /// No table, or another call.
    Unknown,
    /// A file of /proc with its folder (`net/udp`, `123/stat`), or `/proc` itself.
    Proc(String),
    /// Sockets, by netlink (NETLINK_SOCK_DIAG).
    SocketDiag,
}

impl fmt::Display for TableRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableRead::Unknown => f.write_str("no table"),
            TableRead::Proc(file) if file.starts_with('/') => f.write_str(file),
            TableRead::Proc(file) => write!(f, "/proc/{file}"),
            TableRead::SocketDiag => f.write_str("all sockets by netlink (as ss does)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_by_what_was_waited_for() {
        let fault = Account::Blocked(Blocked::FaultMajor);
        let mutex = Account::Blocked(Blocked::Mutex);
        for (account, name) in [
            (fault, ObjectName::File("/data/prices.bin".into())),
            (fault, ObjectName::Anonymous("[heap]".into())),
            (fault, ObjectName::of_mapping(String::new())),
            (mutex, ObjectName::LockClass("lock in ext4_file_write_iter".into())),
        ] {
            assert_eq!(ObjectName::read(account, String::from(name.clone())), name);
        }
    }
}
