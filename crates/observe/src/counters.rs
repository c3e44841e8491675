//! The kernel's own counters, read when recording begins and with each batch.

use std::collections::{BTreeMap, BTreeSet};

use inspect::counters::{self, Reading};
use model::{Account, Counter, ThreadAccounts};

/// Processes of a recording whose counters are read, at most: each takes about 100 us.
const PROCESSES: usize = 16;

/// First and last value by (name, file).
pub struct Counters {
    target: u32,
    /// Processes that a CPU quota has stopped: theirs are read before those of others.
    throttled: BTreeSet<u32>,
    known: BTreeMap<(String, String), (u64, u64)>,
}

impl Counters {
    /// Reads them the first time; `target` is 0 for the whole host.
    pub fn start(target: u32) -> Counters {
        let mut counters = Counters { target, throttled: BTreeSet::new(), known: BTreeMap::new() };
        counters.read(std::iter::empty(), &[]);
        counters
    }

    /// Reads them again, those of these processes as well. A counter that is first seen now starts
    /// here; one whose file has gone keeps its last value.
    pub fn read(
        &mut self,
        watched: impl Iterator<Item = u32>,
        threads: &[ThreadAccounts],
    ) -> Vec<Counter> {
        self.note(counters::host());
        let throttled = threads.iter().filter(|t| t.accounts.get(Account::Throttled) > 0);
        self.throttled.extend(throttled.map(|thread| thread.tgid));
        let is_throttled = |pid: &u32| self.throttled.contains(pid);
        let processes: BTreeSet<u32> = watched.chain([self.target]).filter(|p| *p != 0).collect();
        let (first, others): (Vec<u32>, Vec<u32>) = processes.into_iter().partition(is_throttled);
        for process in first.into_iter().chain(others).take(PROCESSES) {
            self.note(counters::process(process));
        }
        let counter = |((name, source), (first, last)): (&(String, String), &(u64, u64))| Counter {
            name: name.clone(),
            source: source.clone(),
            first: *first,
            last: *last,
        };
        self.known.iter().map(counter).collect()
    }

    fn note(&mut self, readings: Vec<Reading>) {
        for Reading { name, value, source } in readings {
            let range = self.known.entry((name, source)).or_insert((value, value));
            range.1 = value;
        }
    }
}
