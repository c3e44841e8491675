//! Threads that are summed while they are recorded: beyond some thousands those of processes that
//! lived for a moment. Anybody can start a million of these.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem;

use model::{Batch, Crowd as Summed, OtherThreads, ThreadAccounts};

/// Processes that have ended and are remembered, because sums still tell of them: 5 MB. Of 2,000 that
/// end in a second those of two minutes.
const ENDED_KEPT: usize = 262_144;

/// Processes whose threads are summed by process; those of more go to the group of their name.
const PROCESSES: usize = 4_096;

/// A thread that was in none of so many batches, one a second, has ended.
const BATCHES: u64 = 600;

/// Which threads are summed, and what they came to.
#[derive(Default)]
pub struct Crowd {
    summed: Summed,
    /// Dead threads that were handed over one by one.
    one_by_one: usize,
    /// Handed over alive: the number of the batch that had them last.
    alive: HashMap<(u32, u64), u64>,
    batches: u64,
    /// Processes with a thread that is alive now, and those that had one when the last batch was made.
    living: HashSet<u32>,
    lived: HashSet<u32>,
    of_processes: HashSet<u32>,
    /// Processes that have ended, and their groups.
    groups: HashMap<u32, u32>,
    ended: VecDeque<u32>,
    /// Sums that are to be handed over.
    changed: HashSet<u32>,
}

impl Crowd {
    /// A thread of this process is alive. A batch may lack it: who starts threads all the time moves
    /// while it is read.
    pub fn met_alive(&mut self, tgid: u32) {
        self.living.insert(tgid);
        // Process ids are reused.
        self.groups.remove(&tgid);
    }

    /// Sums up those threads of a batch that are too many, and leaves the others.
    pub fn take(&mut self, batch: &mut Batch) {
        let alive = batch.threads.iter().filter(|thread| thread.alive);
        self.batches += 1;
        self.alive.extend(alive.map(|thread| ((thread.tid, thread.first_ns), self.batches)));
        batch.threads.retain(|thread| {
            // Who was handed over before is stored by itself, and is replaced there.
            if thread.alive || self.alive.remove(&(thread.tid, thread.first_ns)).is_some() {
                return true;
            }
            if self.one_by_one < OtherThreads::ONE_BY_ONE {
                self.one_by_one += 1;
                return true;
            }
            let to = self.add(thread);
            self.changed.insert(to);
            false
        });
        self.forget_lost();
        self.lived = mem::take(&mut self.living);
        let changed = mem::take(&mut self.changed);
        let sums = self.summed.sums().filter(|sum| changed.contains(&sum.tgid));
        batch.sums.others = sums.cloned().collect();
    }

    /// Those whose end was lost. A thread may be missing in a batch, but not in so many.
    fn forget_lost(&mut self) {
        let oldest = self.batches.saturating_sub(BATCHES);
        if self.batches.is_multiple_of(BATCHES) {
            self.alive.retain(|_, batch| *batch >= oldest);
        }
    }

    /// Adds a thread; gives the process or the group that it was added to.
    fn add(&mut self, thread: &ThreadAccounts) -> u32 {
        let tgid = thread.tgid;
        let lives = self.living.contains(&tgid) || self.lived.contains(&tgid);
        let is_known = self.of_processes.contains(&tgid);
        let to = if lives && (is_known || self.of_processes.len() < PROCESSES) {
            self.of_processes.insert(tgid);
            tgid
        } else {
            self.put_into_group(thread)
        };
        self.summed.add(thread, to);
        to
    }

    fn put_into_group(&mut self, thread: &ThreadAccounts) -> u32 {
        let of_name = || self.summed.group(&thread.comm);
        let group = *self.groups.entry(thread.tgid).or_insert_with(of_name);
        if thread.tid == thread.tgid {
            self.ended.push_back(thread.tgid);
        }
        while self.ended.len() > ENDED_KEPT
            && let Some(tgid) = self.ended.pop_front()
        {
            self.groups.remove(&tgid);
        }
        group
    }

    /// True if threads that end are summed from now on.
    pub fn sums_up(&self) -> bool {
        self.one_by_one >= OtherThreads::ONE_BY_ONE
    }

    /// The group of a process that has ended; `None` if it is one by itself.
    pub fn group_of(&self, tgid: u32) -> Option<u32> {
        self.groups.get(&tgid).copied()
    }

    /// The group of processes with this name.
    pub fn group(&mut self, name: &str) -> u32 {
        let group = self.summed.group(name);
        self.changed.insert(group);
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Account, Accounts};

    fn thread(tid: u32, tgid: u32, alive: bool) -> ThreadAccounts {
        ThreadAccounts {
            tid,
            tgid,
            comm: "sh".into(),
            first_ns: 5,
            last_ns: 15,
            alive,
            open: Account::User,
            accounts: [(Account::User, 10)].into_iter().collect(),
            realtime: 0,
            minor_faults: 0,
            major_faults: 0,
            sleeps: 0,
            preemptions: 0,
            migrations: 0,
        }
    }

    fn taken(crowd: &mut Crowd, threads: Vec<ThreadAccounts>) -> Batch {
        threads
            .iter()
            .filter(|thread| thread.alive)
            .for_each(|thread| crowd.met_alive(thread.tgid));
        let mut batch = Batch { threads, ..Batch::default() };
        crowd.take(&mut batch);
        batch
    }

    #[test]
    fn beyond_some_thousands_only_those_that_live_for_a_moment_are_summed() {
        let mut crowd = Crowd::default();
        let first = (1..=OtherThreads::ONE_BY_ONE as u32).map(|tid| thread(tid, tid, false));
        let first: Vec<_> = first.collect();
        let batch = taken(&mut crowd, first.clone());
        assert_eq!(batch.threads, first);

        let batch = taken(&mut crowd, vec![thread(90_001, 90_001, true)]);
        assert_eq!(batch.threads.len(), 1);
        // It ends; and so do a thread of it that was never seen, and processes.
        let ended = [
            (90_001, 90_001),
            (90_002, 90_001),
            (90_003, 90_003),
            (90_004, 90_003),
            (90_005, 90_005),
        ];
        let batch = taken(&mut crowd, ended.map(|(tid, tgid)| thread(tid, tgid, false)).to_vec());
        assert_eq!(batch.threads, [thread(90_001, 90_001, false)], "it is stored by itself");
        let [of_process, of_group] = batch.sums.others.as_slice() else { panic!("{batch:?}") };
        assert_eq!((of_process.tgid, of_process.threads), (90_001, 1));
        assert_eq!((of_group.threads, of_group.processes), (3, 2));
        assert_eq!(of_group.accounts, [(Account::User, 30)].into_iter().collect::<Accounts>());
        assert_eq!(crowd.group_of(90_003), Some(of_group.tgid));
        assert_eq!(crowd.group_of(90_001), None);

        // What was read of a thread that is alive did not add up, so no batch has it.
        crowd.met_alive(90_007);
        let batch = taken(&mut crowd, vec![thread(90_008, 90_007, false)]);
        let main_and_another = [(90_007, 90_007), (90_009, 90_007)];
        let later = taken(
            &mut crowd,
            main_and_another.map(|(tid, tgid)| thread(tid, tgid, false)).to_vec(),
        );
        for (batch, threads) in [(batch, 1), (later, 3)] {
            let [of_process] = batch.sums.others.as_slice() else { panic!("{batch:?}") };
            assert_eq!((of_process.tgid, of_process.threads), (90_007, threads));
        }

        // The id is used again.
        taken(&mut crowd, vec![thread(90_003, 90_003, true)]);
        assert_eq!(crowd.group_of(90_003), None);
        assert!(taken(&mut crowd, Vec::new()).sums.others.is_empty(), "nothing changed");
    }

    #[test]
    fn what_is_remembered_of_ended_processes_has_a_bound() {
        let mut crowd = Crowd { one_by_one: OtherThreads::ONE_BY_ONE, ..Crowd::default() };
        for start in (1..600_000).step_by(50_000) {
            let ended = (start..start + 50_000).map(|tid| thread(tid, tid, false));
            assert!(taken(&mut crowd, ended.collect()).threads.is_empty());
        }
        assert_eq!(crowd.groups.len(), ENDED_KEPT);
        assert_eq!(crowd.summed.sums().map(|sum| sum.threads).sum::<u64>(), 600_000);
    }
}
