//! Complete sums (not only of outliers) of who waited for what, and because of whom.

mod in_the_way;
mod object_name;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sums::add_each;
use crate::{Account, ChainEnd, StackId, Sum};

pub use self::in_the_way::{ConcurrentCall, HoldSum, RunnerSum, TableRead};
pub use self::object_name::ObjectName;
pub use crate::syscall::CallError;

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
    /// The same of those turns in which the one that had the lock waited for work, and had done nothing
    /// else since it had it; 0 in older runs.
    pub idle_turn_ns: u64,
    /// A thread that had handed nothing to anybody when it waited so: it began its life by waiting
    /// for work. And the thread that then ended the wait.
    pub began: Option<(u32, u32)>,
    /// The same time by what the one did meanwhile that was waited for, or that that one waited
    /// for. Sums to `ns`; empty in older runs.
    pub ends: BTreeMap<ChainEnd, u64>,
    /// Of the longest wait: the thread at the end of most of it, and what that one did. Of a wait for a
    /// lock that nobody ended ([`ChainEnd::Unknown`]), the thread that the lock names as its owner.
    pub longest_end: Option<(u32, ChainEnd)>,
    /// The thread at the end of more than half of all that time, and what it did; if there is none, one
    /// of several. `None` in older runs.
    pub usual_end: Option<(u32, ChainEnd)>,
    /// Where in the program the longest of these waits is that had not ended when recording stopped.
    /// `None` if that is not known, if all have ended, and in older runs.
    pub open_at: Option<StackId>,
}

impl WaitSum {
    /// The part with one of these ends.
    pub fn ends_in(&self, which: impl Fn(ChainEnd) -> bool) -> u64 {
        let ends = self.ends.iter().filter(|(end, _)| which(**end));
        ends.fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }

    /// The time at the end of which [`WaitSum::usual_end`] was: no more than this.
    pub fn usual_ns(&self) -> u64 {
        let (_, usual) = self.usual_end.unzip();
        self.ends_in(|end| Some(end) == usual)
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
        self.ns.max(self.max_ns).max(self.turn_ns).max(self.idle_turn_ns)
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn stacks(&self) -> [Option<StackId>; 2] {
        [self.open_at, None]
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), Some(&mut self.waker_tgid)]
    }

    fn generalize(&mut self) {
        self.open_at = None;
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
        if other.usual_ns() > self.usual_ns() {
            self.usual_end = other.usual_end;
        }
        for (end, ns) in &other.ends {
            let sum = self.ends.entry(*end).or_default();
            *sum = sum.saturating_add(*ns);
        }
        add_each!(
            self,
            other,
            [
                count,
                ns,
                by_waiter,
                lock_like,
                many,
                again,
                by_parked,
                open,
                turns,
                turn_ns,
                idle_turn_ns
            ]
        );
        self.max_ns = self.max_ns.max(other.max_ns);
        if self.waiter_tid != other.waiter_tid {
            self.waiter_tid = 0;
        }
        if other.waker_tid != 0 {
            self.waker_tid = other.waker_tid;
        }
        self.began = self.began.or(other.began);
        self.open_at = self.open_at.or(other.open_at);
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
    idle_turn_ns: u64,
    #[serde(default)]
    began: Option<(u32, u32)>,
    #[serde(default)]
    asked: bool,
    #[serde(default)]
    ends: BTreeMap<ChainEnd, u64>,
    #[serde(default)]
    longest_end: Option<(u32, ChainEnd)>,
    #[serde(default)]
    usual_end: Option<(u32, ChainEnd)>,
    #[serde(default)]
    open_at: Option<StackId>,
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
            idle_turn_ns: sum.idle_turn_ns,
            began: sum.began,
            asked: sum.asked,
            ends: sum.ends,
            longest_end: sum.longest_end,
            usual_end: sum.usual_end,
            open_at: sum.open_at,
        }
    }
}
