//! A futex word, pipe or semaphore with what its waits show: is it a lock, a barrier, or work that
//! threads give each other?

use std::borrow::Cow;

use model::{Account, Blocked, ChainEnd, WaitSum, part_of};

use crate::case::chain_ends::ChainEnds;

/// One in so many waits ended together with another: at a barrier of three threads it is every
/// second, of more it is more.
const BARRIER: u64 = 3;

/// All time of turns but one in so many parts.
const NEARLY_ALL: u64 = 10;

/// What is known has to be so many times what is not.
const KNOWN_TO_UNKNOWN: u64 = 2;

/// A futex word, a pipe with a token in it or a set of System V semaphores: all waits of one process
/// on it.
#[derive(Clone, Debug)]
pub struct LockWord {
    /// Process.
    pub tgid: u32,
    /// In what it is waited for.
    pub account: Account,
    /// Address of the word, inode of the pipe, [`SEMAPHORES`](crate::case::lost::SEMAPHORES) and the
    /// number of the set.
    pub address: u64,
    /// Name of the lock, if one was found.
    pub name: Option<String>,
    /// The function in which threads wait, if that alone shows that it is a lock.
    pub function: Option<String>,
    /// Waits.
    pub count: u64,
    /// Time asleep in them.
    pub ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Waits ended by a thread whose last wait of this kind was here.
    pub by_waiter: u64,
    /// Waits whose waker had just ended another one here.
    pub many: u64,
    /// Waits that began when another one here had just ended.
    pub again: u64,
    /// Waits ended by a thread that has a turn where each thread has a word of its own.
    pub by_parked: u64,
    /// Threads with a word of their own that are taken together here; 0 if it is one word.
    pub parked: u64,
    /// Waits that a thread ended, and no timeout.
    pub by_thread: u64,
    /// Waits for the value that means "locked, and others wait".
    pub lock_like: u64,
    /// Waits that had not ended when recording stopped.
    pub open: u64,
    /// Turns that were seen whole.
    pub turns: u64,
    /// How long they took, all together.
    pub turn_ns: u64,
    /// The same of those in which the one that had it waited for work with it.
    pub idle_turn_ns: u64,
    /// By what the one did meanwhile that had the lock.
    pub ends: ChainEnds,
}

impl LockWord {
    /// True of a wait at it.
    pub(super) fn is_of(&self, wait: &WaitSum) -> bool {
        (self.tgid, self.account, self.address) == (wait.tgid, wait.account, wait.object)
    }

    /// At least half of the waits show a lock by their value, or of those that a thread ended at
    /// least half by being handed on; and whoever has it does not wait for work.
    pub(super) fn is_lock(&self) -> bool {
        (self.has_lock_value() || self.is_handed_on()) && !self.is_for_work()
    }

    /// Whoever has it waits for work with it (to accept a connection, for a message): so do those that
    /// wait for it, one after the other.
    pub(super) fn is_for_work(&self) -> bool {
        self.turn_ns > 0 && self.idle_turn_ns >= self.turn_ns - self.turn_ns / NEARLY_ALL
    }

    fn has_lock_value(&self) -> bool {
        self.count > 0 && self.lock_like >= self.count.div_ceil(2)
    }

    fn is_handed_on(&self) -> bool {
        let by_waiter = self.handed_on();
        by_waiter > 0 && by_waiter >= self.by_thread.div_ceil(2) && !self.is_broadcast()
    }

    /// So many of its waits are handed on that it is a lock and nothing else: the others were ended
    /// by threads that had got it without a wait.
    fn is_mostly_handed_on(&self) -> bool {
        self.handed_on() >= self.by_thread / 4 * 3
    }

    /// Waits ended by one that had waited itself.
    fn handed_on(&self) -> u64 {
        if self.parked > 0 { self.by_parked } else { self.by_waiter }
    }

    /// Whoever ends waits here ends several, and most of those that it has woken go on. At a barrier
    /// all do, so `again` is near 0; at a lock that wakes all, all but one wait again, so it is near
    /// `many`.
    fn is_broadcast(&self) -> bool {
        self.many.saturating_mul(BARRIER) >= self.by_thread.max(1) && self.again < self.many / 2
    }

    /// Not one of the waits for it has ended.
    pub(crate) fn is_never_let_go(&self) -> bool {
        self.open > 0 && self.open == self.count
    }

    /// All who come wait for the one that comes last, which has waited here, too.
    pub(super) fn is_barrier(&self) -> bool {
        self.by_waiter > 0
            && self.by_waiter >= self.by_thread.div_ceil(2)
            && self.is_let_go_together()
    }

    /// Its waits end together, and it is no lock: it may be a barrier, or work for all.
    pub(super) fn is_let_go_together(&self) -> bool {
        self.is_broadcast() && !self.has_lock_value()
    }

    /// True if somebody had the lock at such an end of a wait for it. What is not known is too long
    /// ago: where it is the small part, of a word whose waits are nearly all handed on, it was no
    /// different; where it is the large one, threads may have had nothing to do.
    fn is_in_turn(&self, end: ChainEnd) -> bool {
        if end != ChainEnd::Unknown {
            return end.is_recorded();
        }
        let unknown = self.ends.sum_of(|end| end == ChainEnd::Unknown);
        self.is_mostly_handed_on()
            && unknown <= self.ends.sum_of(ChainEnd::is_recorded) / KNOWN_TO_UNKNOWN
    }

    /// The part of `ns` that was waiting for a lock. Where only who ended the waits shows that, it
    /// may be work that threads give each other: then time counts only if a recorded thread was at
    /// the end of it, not if all waited for something from outside.
    pub fn lost_ns(&self) -> u64 {
        let by_value = part_of(self.ns, self.lock_like, self.count);
        if !self.is_handed_on() {
            return by_value;
        }
        let handed_on = match self.is_mostly_handed_on() {
            true => self.ns,
            false => part_of(self.ns, self.handed_on(), self.by_thread),
        };
        match self.ends.total() {
            0 => by_value.max(handed_on),
            _ => by_value.max(self.ends.part_of(handed_on, |end| self.is_in_turn(end))),
        }
    }

    /// Without a wait.
    pub(super) fn new(tgid: u32, account: Account, address: u64) -> LockWord {
        LockWord {
            tgid,
            account,
            address,
            name: None,
            function: None,
            count: 0,
            ns: 0,
            max_ns: 0,
            by_waiter: 0,
            many: 0,
            again: 0,
            by_parked: 0,
            parked: 0,
            by_thread: 0,
            lock_like: 0,
            open: 0,
            turns: 0,
            turn_ns: 0,
            idle_turn_ns: 0,
            ends: ChainEnds::default(),
        }
    }

    pub(super) fn add(&mut self, wait: &WaitSum) {
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
        self.again = self.again.saturating_add(wait.again);
        self.by_parked = self.by_parked.saturating_add(wait.by_parked);
        self.open = self.open.saturating_add(wait.open);
        self.turns = self.turns.saturating_add(wait.turns);
        self.turn_ns = self.turn_ns.saturating_add(wait.turn_ns);
        self.idle_turn_ns = self.idle_turn_ns.saturating_add(wait.idle_turn_ns);
        self.ends.add(&of_holders(wait));
        if self.name.is_none() {
            self.name = wait.name.as_ref().map(|name| name.as_str().to_owned());
        }
    }
}

/// Without what a timeout ended: that one gave up, looked, and waits on, which says nothing of whoever
/// has the lock.
fn of_holders(wait: &WaitSum) -> Cow<'_, WaitSum> {
    let is_timed = wait.waker_tgid == 0 && wait.account == Account::Blocked(Blocked::Futex);
    if !is_timed || wait.ends.is_empty() {
        return Cow::Borrowed(wait);
    }
    let mut wait = wait.clone();
    wait.ends.retain(|end, _| *end == ChainEnd::Unknown);
    let is_unknown = |(_, end): &(u32, ChainEnd)| *end == ChainEnd::Unknown;
    wait.longest_end = wait.longest_end.filter(is_unknown);
    wait.usual_end = wait.usual_end.filter(is_unknown);
    Cow::Owned(wait)
}
