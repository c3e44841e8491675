//! Threads that are summed because there were too many to keep one by one.
//!
//! A host may have millions of processes in an hour, each for a moment. Beyond some thousands
//! nobody reads them one by one; all that is asked of them is where their time went.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::sums::add_each;
use crate::{Account, Accounts, Process, Sum, ThreadAccounts};

/// Programs with a group of their own, by name; whoever runs programs chooses how many names there are.
const NAMES: usize = 64;

/// Threads that are summed: of one process, or of all processes with a name that were too many.
///
/// `accounts` has all of their wall time, so that each nanosecond of a run is in one account, of a
/// thread or of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherThreads {
    /// Process, or the number of a group of processes ([`OtherThreads::is_group`]). Other sums refer
    /// to a group by this number as they do to a process.
    pub tgid: u32,
    /// Name of the threads, or of the group.
    pub comm: String,
    /// How many threads.
    pub threads: u64,
    /// How many processes, by their main threads.
    pub processes: u64,
    /// First moment of the first.
    pub first_ns: u64,
    /// Last moment of the last.
    pub last_ns: u64,
    /// Where their wall time went.
    pub accounts: Accounts,
    /// How many of the threads have time in an account.
    pub with: BTreeMap<Account, u64>,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Times that they went to sleep.
    pub sleeps: u64,
    /// Times that they were preempted.
    pub preemptions: u64,
    /// Times that they were moved to another CPU.
    pub migrations: u64,
}

impl OtherThreads {
    /// So many threads are kept one by one, not counting those that live for more than a moment while
    /// they are recorded. They take some 50 MB, where 2 million took gigabytes; and a program that
    /// starts 10,000 a second, which is about the most that a kernel does, is whole for some seconds.
    pub const ONE_BY_ONE: usize = 50_000;

    /// The name of the group of all programs that have none by themselves.
    pub const FURTHER: &str = "other programs";

    /// The name of the group of those whose program is not known. Longer than the name of a thread can
    /// be, so no program has it.
    pub const UNTOLD: &str = "programs not told apart";

    /// The first number of a group: no process id is that large (Linux has 22 bits).
    const GROUPS: u32 = 1 << 31;

    /// True if this is not the id of a process, but the number of a group.
    pub fn is_group(tgid: u32) -> bool {
        tgid >= Self::GROUPS
    }

    /// How many of the threads have time in any account that `which` accepts: at least so many.
    pub fn threads_in(&self, which: impl Fn(Account) -> bool) -> u64 {
        let with = self.with.iter().filter(|(account, _)| which(**account));
        with.map(|(_, threads)| *threads).max().unwrap_or(0)
    }

    fn add_with(&mut self, account: Account, threads: u64) {
        let sum = self.with.entry(account).or_default();
        *sum = sum.saturating_add(threads);
    }

    fn none(tgid: u32, comm: &str) -> OtherThreads {
        OtherThreads {
            tgid,
            comm: comm.to_owned(),
            threads: 0,
            processes: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            accounts: Accounts::new(),
            with: BTreeMap::new(),
            minor_faults: 0,
            major_faults: 0,
            sleeps: 0,
            preemptions: 0,
            migrations: 0,
        }
    }

    fn add_thread(&mut self, thread: &ThreadAccounts) {
        self.threads = self.threads.saturating_add(1);
        self.processes = self.processes.saturating_add(u64::from(thread.tid == thread.tgid));
        self.first_ns = self.first_ns.min(thread.first_ns);
        self.last_ns = self.last_ns.max(thread.last_ns);
        self.accounts.merge(&thread.accounts);
        thread.accounts.iter().for_each(|(account, _)| self.add_with(account, 1));
        self.minor_faults = self.minor_faults.saturating_add(thread.minor_faults);
        self.major_faults = self.major_faults.saturating_add(thread.major_faults);
        self.sleeps = self.sleeps.saturating_add(thread.sleeps);
        self.preemptions = self.preemptions.saturating_add(thread.preemptions);
        self.migrations = self.migrations.saturating_add(thread.migrations);
    }
}

impl Sum for OtherThreads {
    fn key(&self) -> impl Serialize {
        self.tgid
    }

    fn amount(&self) -> u64 {
        self.ns()
    }

    fn count(&self) -> u64 {
        let counts =
            [self.minor_faults, self.major_faults, self.sleeps, self.preemptions, self.migrations];
        counts.into_iter().fold(self.threads.max(self.processes), u64::max)
    }

    fn ns(&self) -> u64 {
        self.accounts.total()
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        // Its number is what the others are translated to.
        [None, None]
    }

    fn add(&mut self, other: &Self) {
        add_each!(
            self,
            other,
            [threads, processes, minor_faults, major_faults, sleeps, preemptions, migrations]
        );
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.accounts.merge(&other.accounts);
        other.with.iter().for_each(|(account, threads)| self.add_with(*account, *threads));
    }
}

/// Sums threads up.
#[derive(Debug, Default)]
pub struct Crowd {
    groups: HashMap<String, u32>,
    sums: BTreeMap<u32, OtherThreads>,
}

impl Crowd {
    /// Goes on from sums that are there.
    pub fn from(sums: Vec<OtherThreads>) -> Crowd {
        let groups = sums.iter().filter(|sum| OtherThreads::is_group(sum.tgid));
        Crowd {
            groups: groups.map(|sum| (sum.comm.clone(), sum.tgid)).collect(),
            sums: sums.into_iter().map(|sum| (sum.tgid, sum)).collect(),
        }
    }

    /// The number of the group of the programs with this name, which has a sum from then on.
    pub fn group(&mut self, name: &str) -> u32 {
        if let Some(number) = self.groups.get(name) {
            return *number;
        }
        // Those that are not told apart have a sum of their own, or it would be taken for that of
        // the further ones.
        let is_own = self.groups.len() < NAMES || name == OtherThreads::UNTOLD;
        let name = if is_own { name } else { OtherThreads::FURTHER };
        let next = OtherThreads::GROUPS.saturating_add(self.groups.len() as u32);
        let number = *self.groups.entry(name.to_owned()).or_insert(next);
        self.sums.entry(number).or_insert_with(|| OtherThreads::none(number, name));
        number
    }

    /// Adds a thread to those of a process, or of a group.
    pub fn add(&mut self, thread: &ThreadAccounts, tgid: u32) {
        let none = || OtherThreads::none(tgid, &thread.comm);
        self.sums.entry(tgid).or_insert_with(none).add_thread(thread);
    }

    /// The sums.
    pub fn sums(&self) -> impl Iterator<Item = &OtherThreads> {
        self.sums.values()
    }

    /// The groups, like processes.
    pub fn processes(&self) -> impl Iterator<Item = Process> {
        let groups = self.groups.iter();
        groups.map(|(name, number)| Process {
            tgid: *number,
            comm: name.clone(),
            exe: String::new(),
            build_id: String::new(),
            watched: true,
        })
    }

    /// The sums, by themselves.
    pub fn into_sums(self) -> Vec<OtherThreads> {
        self.sums.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, tgid: u32, comm: &str) -> ThreadAccounts {
        ThreadAccounts {
            tid,
            tgid,
            comm: comm.to_owned(),
            first_ns: u64::from(tid),
            last_ns: u64::from(tid) + 10,
            alive: false,
            open: Account::User,
            accounts: [(Account::User, 10)].into_iter().collect(),
            realtime: 0,
            minor_faults: 1,
            major_faults: 2,
            sleeps: 3,
            preemptions: 4,
            migrations: 5,
        }
    }

    #[test]
    fn threads_are_summed_by_the_name_of_their_program_and_go_on_later() {
        let mut crowd = Crowd::default();
        let sh = crowd.group("sh");
        crowd.add(&thread(7, 7, "sh"), sh);
        crowd.add(&thread(8, 7, "worker"), sh);
        let mut crowd = Crowd::from(crowd.into_sums());
        assert_eq!(crowd.group("sh"), sh);
        crowd.add(&thread(9, 9, "sh"), sh);
        crowd.add(&thread(3, 2, "pool"), 2);
        let sums = crowd.into_sums();
        let [of_process, of_group] = sums.as_slice() else { panic!("{sums:?}") };
        assert_eq!(
            (of_process.tgid, of_process.comm.as_str(), of_process.processes),
            (2, "pool", 0)
        );
        assert_eq!((of_group.tgid, of_group.comm.as_str()), (sh, "sh"));
        assert_eq!((of_group.threads, of_group.processes), (3, 2));
        assert_eq!((of_group.first_ns, of_group.last_ns), (7, 19));
        assert_eq!((of_group.accounts.total(), of_group.migrations), (30, 15));
        assert_eq!(
            (of_group.threads_in(Account::is_running), of_group.threads_in(|_| false)),
            (3, 0)
        );
    }

    #[test]
    fn names_beyond_a_number_share_a_group() {
        let mut crowd = Crowd::default();
        let numbers: Vec<u32> = (0..1000).map(|n| crowd.group(&format!("name {n}"))).collect();
        let mut different = numbers.clone();
        different.dedup();
        assert_eq!(different.len(), NAMES + 1);
        assert!(numbers.iter().all(|number| OtherThreads::is_group(*number)));
        assert_eq!(crowd.group("yet another"), numbers[999]);
        let untold = crowd.group(OtherThreads::UNTOLD);
        assert!(
            !numbers.contains(&untold),
            "what adds up to it is not among what adds up to others"
        );
        assert_eq!(crowd.group(OtherThreads::UNTOLD), untold);
        assert_eq!(
            crowd.processes().filter(|group| group.comm == OtherThreads::FURTHER).count(),
            1
        );
    }
}
