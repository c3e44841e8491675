//! Waits for answers: a thread has asked another thread of this host for something, by a socket, by
//! handing work over, or by starting a child process, and waits for what comes back, or for room in a
//! queue. Unlike a server
//! that waits for the next request it has nothing else to do, so the time is lost, and what the other
//! one did meanwhile says why.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, ChainEnd, Run, WaitSum, Waker};

use crate::case::chain_ends::ChainEnds;
use crate::case::handovers::{handovers, is_of_lock, saturated};
use crate::case::lock_word::LockWord;
use crate::case::purposes::{Known, Purpose, Purposes};

/// In what a thread waits for room in a pipe.
pub const ROOM: Account = Account::Blocked(Blocked::PipeWrite);

/// The waits of one process for answers of one peer, or for room in the pipe that it reads.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Process that waited.
    pub tgid: u32,
    /// Process that answered; 0 if it was one child process after the other.
    pub peer_tgid: u32,
    /// The worker of that process, where one thread alone answered.
    pub worker_tid: Option<u32>,
    /// Name of the peer.
    pub peer: String,
    /// In what.
    pub account: Account,
    /// Child processes that answered, one after the other.
    pub children: u64,
    /// Waits.
    pub count: u64,
    /// Time asleep in them.
    pub ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// What was waited for, by number: of a futex the word.
    pub objects: BTreeSet<u64>,
    /// By what the peer did meanwhile.
    pub ends: ChainEnds,
    /// Where only names tell what they wait for: that, and the function that says so.
    pub named: Option<(Purpose, String)>,
    /// What a worker computes for whoever asked is that one's own work, done by another: it is lost
    /// only if others' work comes first.
    works_for_one: bool,
}

impl Answers {
    /// True if waiting with this end is lost: a recorded thread was at it. Where that had nothing to do
    /// until somebody else asked it for something, who waits only waits for work, by way of it: for a job
    /// in a queue (BRPOP).
    pub fn is_lost(&self, end: ChainEnd) -> bool {
        end.is_recorded() && end != ChainEnd::Idle && !(self.works_for_one && end == ChainEnd::Cpu)
    }

    /// The part in which a recorded thread was at the end: what is beyond is not known to be slow.
    pub fn lost_ns(&self) -> u64 {
        self.ends.part_of(self.ns, |end| self.is_lost(end))
    }

    /// True if it was one child process after the other that answered.
    pub fn is_of_children(&self) -> bool {
        self.peer_tgid == 0
    }

    /// `broker (pid 20)`, `renderer (tid 21)`, `threads of its own (pool)`, or `child processes named
    /// gzip`.
    pub fn peer_name(&self) -> String {
        match self.worker_tid {
            _ if self.is_of_children() => format!("child processes named {}", self.peer),
            Some(tid) if self.tgid == self.peer_tgid => format!("{} (tid {tid})", self.peer),
            None if self.tgid == self.peer_tgid => format!("threads of its own ({})", self.peer),
            _ => format!("{} (pid {})", self.peer, self.peer_tgid),
        }
    }

    /// True if this peer ended a wait.
    pub fn is_ended_by(&self, waker: &Waker) -> bool {
        match self.peer_tgid {
            0 => waker.comm == self.peer,
            peer => waker.tgid == peer,
        }
    }

    /// None yet, of children that have this wait's name.
    pub(super) fn of_children(wait: &WaitSum, works_for_one: bool) -> Answers {
        Answers { peer_tgid: 0, ..Answers::of(wait, None, works_for_one) }
    }

    fn of(wait: &WaitSum, worker_tid: Option<u32>, works_for_one: bool) -> Answers {
        Answers {
            tgid: wait.tgid,
            peer_tgid: wait.waker_tgid,
            worker_tid,
            peer: wait.waker_comm.clone(),
            account: wait.account,
            children: 0,
            count: 0,
            ns: 0,
            max_ns: 0,
            objects: BTreeSet::new(),
            ends: ChainEnds::default(),
            named: None,
            works_for_one,
        }
    }

    pub(super) fn add(&mut self, wait: &WaitSum) {
        self.count = self.count.saturating_add(wait.count);
        self.ns = self.ns.saturating_add(wait.ns);
        self.max_ns = self.max_ns.max(wait.max_ns);
        self.objects.insert(wait.object);
        self.ends.add(wait);
    }
}

/// True of waits for room in a pipe at whose end somebody computes, who is recorded: the next stage
/// of a pipeline is busy, or one behind it. A reader that does something else is no bottleneck that
/// less work would widen.
pub fn is_for_a_stage(wait: &WaitSum) -> bool {
    wait.account == ROOM
        && wait.waker_tgid != 0
        && wait.ends_in(|end| end == ChainEnd::Cpu) > wait.ns / 2
}

/// Of a run; those of [`children`](crate::case::children) are apart.
pub fn answers(run: &Run, locks: &[LockWord], purposes: &Purposes) -> Vec<Answers> {
    let mut sums = BTreeMap::<(u32, u32, Option<u32>, Account), Answers>::new();
    let mut add = |wait: &WaitSum, worker_tid, works_for_one| {
        sums.entry((wait.tgid, wait.waker_tgid, worker_tid, wait.account))
            .or_insert_with(|| Answers::of(wait, worker_tid, works_for_one))
            .add(wait);
    };
    for wait in run.sums.waits.iter().filter(|wait| wait.asked && wait.waker_tgid != 0) {
        add(wait, None, false);
    }
    for wait in run.sums.waits.iter().filter(|wait| is_for_a_stage(wait)) {
        add(wait, (wait.waker_tid != 0).then_some(wait.waker_tid), false);
    }
    let mut known = BTreeSet::new();
    for handover in handovers(run, locks) {
        for wait in handover.waits {
            known.insert(std::ptr::from_ref(wait));
            add(wait, Some(handover.worker_tid), !handover.is_saturated);
        }
    }
    let others = run.sums.waits.iter().filter(|wait| {
        !wait.asked && !is_of_lock(wait, locks) && !known.contains(&std::ptr::from_ref(*wait))
    });
    let others: Vec<_> = others.filter_map(|wait| Some((wait, purposes.known(wait)?))).collect();
    let named = [Purpose::Room, Purpose::Result].into_iter();
    sums.into_values().chain(named.flat_map(|purpose| by_name(run, &others, purpose))).collect()
}

/// Those that are known by the functions alone that threads wait in, by process and who ended them.
fn by_name(run: &Run, waits: &[(&WaitSum, &Known)], purpose: Purpose) -> Vec<Answers> {
    let mut pairs = BTreeMap::<(u32, u32), Vec<(&WaitSum, &Known)>>::new();
    for (wait, known) in waits.iter().filter(|(_, known)| known.function(purpose).is_some()) {
        pairs.entry((wait.tgid, wait.waker_tgid)).or_default().push((wait, known));
    }
    let of_pair = |waits: Vec<(&WaitSum, &Known)>| {
        let wakers: BTreeSet<u32> =
            waits.iter().flat_map(|(_, known)| known.wakers()).copied().collect();
        let worker = wakers.first().copied().filter(|_| wakers.len() == 1);
        let parts: Vec<WaitSum> =
            waits.iter().map(|(wait, known)| known.part_for(wait, purpose)).collect();
        let (first, known) = waits.first()?;
        let works_for_one = purpose == Purpose::Result
            && !saturated(run, &wakers, parts.iter().map(|wait| wait.ns).sum());
        let mut sum = Answers::of(first, worker, works_for_one);
        sum.named = known.function(purpose).map(|function| (purpose, function.to_owned()));
        parts.iter().for_each(|part| sum.add(part));
        Some(sum)
    };
    pairs.into_values().filter_map(of_pair).collect()
}
