//! Threads that may run on some of the CPUs only, and what they did.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use inspect::read::{cpu_list, text};
use model::{Account, BoundThreads, ThreadAccounts};

/// Processes and sets of CPUs that have a sum: whoever starts processes chooses how many there are.
const SUMS: usize = 4_096;

/// Threads whose last record is remembered; those whose end was lost are in it to the end.
const THREADS: usize = 65_536;

type Key = (u32, Vec<u32>);

/// What was added of a thread.
struct Added {
    /// `None`: it may run on all CPUs by now.
    to: Option<Key>,
    waited_ns: u64,
    ran_ns: u64,
}

/// The sums, by process and CPUs.
#[derive(Default)]
pub struct Bound {
    online: BTreeSet<u32>,
    sums: BTreeMap<Key, BoundThreads>,
    /// By thread and when it began.
    added: HashMap<(u32, u64), Added>,
    changed: BTreeSet<Key>,
}

impl Bound {
    /// Reads which CPUs there are; to be called before the threads of a batch are seen.
    pub fn look(&mut self) {
        let online = text("/sys/devices/system/cpu/online").unwrap_or_default();
        self.online = cpu_list(&online).into_iter().collect();
    }

    /// Adds what a thread did since it was seen last. `mask` has a bit for each CPU that it may run on,
    /// none if that is not known.
    pub fn see(&mut self, mask: &[u64], thread: &ThreadAccounts) {
        let cpus = self.cpus(mask);
        let id = (thread.tid, thread.first_ns);
        let is_bound = !cpus.is_empty() && cpus.len() < self.online.len();
        let was = self.added.remove(&id);
        if !is_bound && was.is_none() {
            return;
        }
        let to = is_bound.then_some((thread.tgid, cpus));
        let now = Added {
            waited_ns: thread.accounts.sum_of(Account::is_runnable),
            ran_ns: thread.accounts.sum_of(Account::is_running),
            to,
        };
        if let Some(key) = &now.to {
            self.add(key, &now, was.as_ref());
        }
        if thread.alive && self.added.len() < THREADS {
            self.added.insert(id, now);
        }
    }

    /// The sums that have changed since the last call.
    pub fn take(&mut self) -> Vec<BoundThreads> {
        let changed = std::mem::take(&mut self.changed);
        changed.iter().filter_map(|key| self.sums.get(key).cloned()).collect()
    }

    fn add(&mut self, key: &Key, now: &Added, was: Option<&Added>) {
        if self.sums.len() >= SUMS && !self.sums.contains_key(key) {
            return;
        }
        let sum = self.sums.entry(key.clone()).or_insert_with(|| BoundThreads {
            tgid: key.0,
            cpus: key.1.clone(),
            threads: 0,
            waited_ns: 0,
            ran_ns: 0,
        });
        let before = |of: fn(&Added) -> u64| was.map_or(0, of);
        sum.threads += u64::from(was.is_none_or(|was| was.to.as_ref() != Some(key)));
        sum.waited_ns += now.waited_ns.saturating_sub(before(|was| was.waited_ns));
        sum.ran_ns += now.ran_ns.saturating_sub(before(|was| was.ran_ns));
        self.changed.insert(key.clone());
    }

    /// Of the CPUs that there are, those of a mask.
    fn cpus(&self, mask: &[u64]) -> Vec<u32> {
        let is_in = |cpu: &u32| {
            let word = mask.get(*cpu as usize / 64);
            word.is_some_and(|word| word >> (cpu % 64) & 1 == 1)
        };
        self.online.iter().copied().filter(is_in).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Accounts;

    fn on_four() -> Bound {
        Bound { online: (0..4).collect(), ..Bound::default() }
    }

    fn thread(tid: u32, waited: u64, ran: u64) -> ThreadAccounts {
        let accounts = [(Account::RunnablePreempted, waited), (Account::User, ran)];
        ThreadAccounts {
            tid,
            tgid: 10,
            comm: "pinned".into(),
            first_ns: 5,
            last_ns: 15,
            alive: true,
            open: Account::User,
            accounts: accounts.into_iter().collect::<Accounts>(),
            realtime: 0,
            minor_faults: 0,
            major_faults: 0,
            sleeps: 0,
            preemptions: 0,
            migrations: 0,
        }
    }

    fn sum(cpus: &[u32], threads: u64, waited_ns: u64, ran_ns: u64) -> BoundThreads {
        BoundThreads { tgid: 10, cpus: cpus.to_vec(), threads, waited_ns, ran_ns }
    }

    #[test]
    fn threads_with_the_same_cpus_are_one_sum_that_grows() {
        let mut bound = on_four();
        bound.see(&[0b0110], &thread(11, 100, 10));
        bound.see(&[0b0110], &thread(12, 200, 20));
        bound.see(&[0b1000], &thread(13, 1, 2));
        assert_eq!(bound.take(), [sum(&[1, 2], 2, 300, 30), sum(&[3], 1, 1, 2)]);
        bound.see(&[0b0110], &thread(11, 150, 15));
        assert_eq!(bound.take(), [sum(&[1, 2], 2, 350, 35)]);
        assert!(bound.take().is_empty());
    }

    #[test]
    fn who_may_run_anywhere_or_is_not_known_is_in_none() {
        let mut bound = on_four();
        bound.see(&[u64::MAX; 16], &thread(11, 1, 1));
        bound.see(&[0; 16], &thread(12, 1, 1));
        bound.see(&[0b1111], &thread(13, 1, 1));
        assert!(bound.take().is_empty());
        assert!(bound.added.is_empty());
    }

    #[test]
    fn a_thread_that_is_bound_anew_has_what_it_did_in_each_place_once() {
        let mut bound = on_four();
        bound.see(&[0b0001], &thread(11, 10, 1));
        bound.see(&[0b1111], &thread(11, 20, 2));
        bound.see(&[0b0010], &thread(11, 25, 3));
        assert_eq!(bound.take(), [sum(&[0], 1, 10, 1), sum(&[1], 1, 5, 1)]);
        bound.see(&[0b0010], &ThreadAccounts { alive: false, ..thread(11, 30, 4) });
        assert_eq!(bound.take(), [sum(&[1], 1, 10, 2)]);
        assert!(bound.added.is_empty());
    }

    #[test]
    fn this_host_has_the_cpus_that_it_says() {
        let mut bound = Bound::default();
        bound.look();
        assert_eq!(bound.online.len(), crate::host::cpu_times().len());
    }
}
