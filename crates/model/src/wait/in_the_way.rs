//! Sums of what others did while a process waited: held its mmap_lock, had its CPU, were in a call.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::sums::adds_up;
use crate::{StackId, Sum, Syscall};

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

    adds_up!(count, ns, max_ns);

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.holder_tgid)]
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
    /// Without system calls (`record --cheap`) an estimate: see `error_if_sampled_ns`.
    pub ns: u64,
}

impl RunnerSum {
    /// Of shorter waits those are looked at in which a multiple of this is, ns of the monotonic clock
    /// (shifted for each thread), where system calls are not recorded; each stands for so much waiting.
    pub const SAMPLED_EVERY_NS: u64 = 1 << 20;

    /// How far a sum of this many ns may be off then, ns: two standard errors, if all waits were shorter
    /// than `SAMPLED_EVERY_NS`. They are looked at with a chance p = wait / `SAMPLED_EVERY_NS` and count
    /// 1 / p times, so the variance of the sum is at most sum * `SAMPLED_EVERY_NS`.
    pub fn error_if_sampled_ns(ns: u64) -> u64 {
        two_errors(ns, Self::SAMPLED_EVERY_NS)
    }
}

/// Two standard errors of an estimated sum.
fn two_errors(ns: u64, sampled_every_ns: u64) -> u64 {
    (2.0 * (ns as f64 * sampled_every_ns as f64).sqrt()) as u64
}

impl Sum for RunnerSum {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.runner_tgid, self.realtime)
    }

    adds_up!(count, ns);

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.runner_tgid)]
    }
}

/// Waits of a process for spinlocks (10 us at least), by who was in a system call on another CPU
/// when they ended: whoever had the lock is among those, but several may be. A sample of the shorter ones:
/// to look around takes 5 us, in which others wait for the lock.
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
    /// Waits that were looked at.
    pub count: u64,
    /// The time of all such waits, an estimate: see `error_ns`. In older recordings all were looked at.
    pub ns: u64,
    /// The longest that was looked at, which is the longest of all, if it is not shorter than
    /// `SAMPLED_EVERY_NS`.
    pub max_ns: u64,
}

impl ConcurrentCall {
    /// Shorter waits are looked at as those of [`RunnerSum::SAMPLED_EVERY_NS`].
    pub const SAMPLED_EVERY_NS: u64 = 1 << 18;

    /// How far `ns` may be off, ns: see [`RunnerSum::error_if_sampled_ns`].
    pub fn error_ns(&self) -> u64 {
        two_errors(self.ns, Self::SAMPLED_EVERY_NS)
    }
}

impl Sum for ConcurrentCall {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.other_tgid, self.other_call, &self.reads, self.kernel)
    }

    adds_up!(count, ns, max_ns);

    fn stacks(&self) -> [Option<StackId>; 2] {
        [self.kernel, None]
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.other_tgid)]
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
