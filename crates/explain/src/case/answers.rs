//! Waits for answers: a thread has asked another thread of this host for something, by a socket, by
//! handing work over, or by starting a child process, and waits for what comes back. Unlike a server
//! that waits for the next request it has nothing else to do, so the time is lost, and what the other
//! one did meanwhile says why.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, ChainEnd, Run, Syscall, ThreadAccounts, WaitSum, Waker};

use crate::case::chain_ends::ChainEnds;
use crate::case::handovers::handovers;
use crate::case::lock_word::LockWord;

/// In what a thread waits for room in a pipe.
pub const ROOM: Account = Account::Blocked(Blocked::PipeWrite);
/// In what a thread waits for a child process.
pub const CHILD: Account = Account::Blocked(Blocked::ChildWait);
/// In what a thread waits for what a child process writes.
const OUTPUT: Account = Account::Blocked(Blocked::PipeRead);
/// Calls that take the exit code of a child. Who reads what others write into a pipe and has no
/// children waits for work.
const REAPING: [&str; 2] = ["wait4", "waitid"];
/// A program that waits for fewer child processes of one name has started what it is there for: a
/// wrapper its command, a server its workers.
const FEWEST_CHILDREN: usize = 3;

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
    /// Waits.
    pub count: u64,
    /// Time asleep in them.
    pub ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// By what the peer did meanwhile.
    pub ends: ChainEnds,
    /// What a worker computes for whoever asked is that one's own work, done by another: it is lost
    /// only if others' work comes first.
    works_for_one: bool,
}

impl Answers {
    /// True if waiting with this end is lost: a recorded thread was at it.
    pub fn is_lost(&self, end: ChainEnd) -> bool {
        end.is_recorded() && !(self.works_for_one && end == ChainEnd::Cpu)
    }

    /// The part in which a recorded thread was at the end: what is beyond is not known to be slow.
    pub fn lost_ns(&self) -> u64 {
        self.ends.part_of(self.ns, |end| self.is_lost(end))
    }

    /// True if it was one child process after the other that answered.
    pub fn is_of_children(&self) -> bool {
        self.peer_tgid == 0
    }

    /// `broker (pid 20)`, `renderer (tid 21)`, or `child processes named gzip`.
    pub fn peer_name(&self) -> String {
        match self.worker_tid {
            _ if self.is_of_children() => format!("child processes named {}", self.peer),
            Some(tid) if self.tgid == self.peer_tgid => format!("{} (tid {tid})", self.peer),
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

    fn of(wait: &WaitSum, worker_tid: Option<u32>, works_for_one: bool) -> Answers {
        Answers {
            tgid: wait.tgid,
            peer_tgid: wait.waker_tgid,
            worker_tid,
            peer: wait.waker_comm.clone(),
            account: wait.account,
            count: 0,
            ns: 0,
            max_ns: 0,
            ends: ChainEnds::default(),
            works_for_one,
        }
    }

    fn add(&mut self, wait: &WaitSum) {
        self.count = self.count.saturating_add(wait.count);
        self.ns = self.ns.saturating_add(wait.ns);
        self.max_ns = self.max_ns.max(wait.max_ns);
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

/// Of a run, the longest first.
pub fn answers(run: &Run, locks: &[LockWord]) -> Vec<Answers> {
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
    for handover in handovers(run, locks) {
        for wait in handover.waits {
            add(wait, Some(handover.worker_tid), !handover.is_saturated);
        }
    }
    let mut sums: Vec<_> = sums.into_values().chain(children(run, locks)).collect();
    sums.sort_by_key(|sum| Reverse(sum.lost_ns()));
    sums
}

/// Waits for child processes that are started one after the other, or for what they write, by process
/// and name of the child. Half of the time in one wait is that for something that goes on until the end.
fn children(run: &Run, locks: &[LockWord]) -> impl Iterator<Item = Answers> {
    let reaps: BTreeSet<u32> =
        run.threads.iter().filter(|thread| is_reaper(thread)).map(|thread| thread.tgid).collect();
    let is_lock = |wait: &WaitSum| locks.iter().any(|word| word.is_of(wait));
    let for_children = run.sums.waits.iter().filter(|wait| {
        is_for_another_process(wait) && reaps.contains(&wait.tgid) && !is_lock(wait)
    });
    let mut sums = BTreeMap::<(u32, Account, &str), (BTreeSet<u32>, Answers)>::new();
    for wait in for_children {
        let none = || (BTreeSet::new(), Answers { peer_tgid: 0, ..Answers::of(wait, None, false) });
        let key = (wait.tgid, wait.account, wait.waker_comm.as_str());
        let (children, sum) = sums.entry(key).or_insert_with(none);
        children.insert(wait.waker_tgid);
        sum.add(wait);
    }
    let again = |(children, sum): &(BTreeSet<u32>, Answers)| {
        children.len() >= FEWEST_CHILDREN && sum.max_ns <= sum.ns / 2
    };
    sums.into_values().filter(again).map(|(_, sum)| sum)
}

/// True if it takes the exit codes of children.
fn is_reaper(thread: &ThreadAccounts) -> bool {
    let calls = REAPING.iter().filter_map(|call| Syscall::named(call)).map(Account::Syscall);
    calls.chain([CHILD]).any(|account| thread.accounts.get(account) > 0)
}

/// True of waits for a child or a pipe that another process ended. The command `sleep` is the timer of
/// the script that calls it.
fn is_for_another_process(wait: &WaitSum) -> bool {
    let is_by_another = wait.waker_tgid != 0 && wait.waker_tgid != wait.tgid;
    [CHILD, OUTPUT].contains(&wait.account) && is_by_another && wait.waker_comm != "sleep"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, wait};

    /// What is lost by waits of so long, each ended by a process of its own.
    fn lost(account: Account, calls: &str, comm: &str, waits: &[u64]) -> Vec<(String, u64)> {
        let call = Account::Syscall(Syscall::named(calls).unwrap());
        let mut run = RunBuilder::new().thread(10, 10, &[(call, 5), (account, 10_000)]);
        for (child, ns) in (20..).zip(waits) {
            run = run.wait(WaitSum {
                waker_tgid: child,
                waker_comm: comm.into(),
                ends: [(ChainEnd::Cpu, *ns)].into(),
                ..wait(10, account, 0, 1, *ns)
            });
        }
        let answers = answers(&run.build(), &[]);
        answers.iter().map(|answers| (answers.peer_name(), answers.lost_ns())).collect()
    }

    #[test]
    fn children_that_are_started_one_after_the_other_are_asked_and_what_they_write_is_the_answer() {
        for account in [CHILD, OUTPUT] {
            let name = "child processes named gzip".to_owned();
            assert_eq!(lost(account, "wait4", "gzip", &[100, 200, 150]), [(name, 450)]);
        }
    }

    #[test]
    fn what_a_wrapper_or_a_server_starts_is_not_and_sleep_is_the_scripts_own_timer() {
        assert_eq!(lost(CHILD, "wait4", "server", &[1000]), []);
        let workers_that_end_together = [1000, 2, 3, 2];
        assert_eq!(lost(CHILD, "wait4", "worker", &workers_that_end_together), []);
        assert_eq!(lost(CHILD, "wait4", "sleep", &[100, 100, 100]), []);
    }

    #[test]
    fn who_has_no_children_reads_what_comes_as_work() {
        assert_eq!(lost(OUTPUT, "read", "logger", &[100, 200, 150]), []);
    }
}
