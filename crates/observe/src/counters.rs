//! The kernel's own counters, read when recording begins and with each batch.

use std::collections::{BTreeMap, BTreeSet};

use inspect::counters::{self, Processes, Reading};
use model::{Account, Counter, ThreadAccounts};

/// Processes of a recording whose counters are read, at most: 14 of a busy PostgreSQL take 1.6 ms.
const PROCESSES: usize = 16;

/// Counters that are remembered, some 200 bytes each.
const KNOWN: usize = 4096;

/// First and last value by (name, file).
pub struct Counters {
    target: u32,
    processes: Processes,
    /// Processes that a CPU quota has stopped: theirs are read before those of others.
    throttled: BTreeSet<u32>,
    known: BTreeMap<(String, String), Known>,
}

struct Known {
    first: u64,
    last: u64,
    /// It is in no batch yet.
    is_new: bool,
    /// It was not read this time.
    is_old: bool,
}

impl Counters {
    /// Reads them the first time; `target` is 0 for the whole host.
    pub fn start(target: u32) -> Counters {
        let mut counters = Counters {
            target,
            processes: Processes::default(),
            throttled: BTreeSet::new(),
            known: BTreeMap::new(),
        };
        counters.look(std::iter::empty(), &[]);
        counters
    }

    /// Reads them again, those of these processes as well, and gives those that have changed. A counter that
    /// is first seen now starts here; one whose file has gone keeps its last value.
    pub fn read(
        &mut self,
        watched: impl Iterator<Item = u32>,
        threads: &[ThreadAccounts],
    ) -> Vec<Counter> {
        self.look(watched, threads);
        let counter = |((name, source), known): (&(String, String), &mut Known)| {
            let changed = std::mem::take(&mut known.is_new);
            changed.then(|| Counter {
                name: name.clone(),
                source: source.clone(),
                first: known.first,
                last: known.last,
            })
        };
        let changed = self.known.iter_mut().filter_map(counter).collect();
        if self.known.len() > KNOWN {
            self.known.retain(|_, known| !known.is_old);
        }
        changed
    }

    fn look(&mut self, watched: impl Iterator<Item = u32>, threads: &[ThreadAccounts]) {
        self.known.values_mut().for_each(|known| known.is_old = true);
        self.note(counters::host());
        let throttled = threads.iter().filter(|t| t.accounts.get(Account::Throttled) > 0);
        self.throttled.extend(throttled.map(|thread| thread.tgid));
        let is_throttled = |pid: &u32| self.throttled.contains(pid);
        let processes: BTreeSet<u32> = watched.chain([self.target]).filter(|p| *p != 0).collect();
        let (first, others): (Vec<u32>, Vec<u32>) = processes.into_iter().partition(is_throttled);
        let readings = self.processes.read(first.into_iter().chain(others).take(PROCESSES));
        self.note(readings);
    }

    fn note(&mut self, readings: Vec<Reading>) {
        for Reading { name, value, source } in readings {
            let begun = Known { first: value, last: value, is_new: true, is_old: false };
            let known = self.known.entry((name, source)).or_insert(begun);
            known.is_new |= known.last != value;
            known.last = value;
            known.is_old = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_given_when_it_is_new_and_then_when_it_has_changed() {
        let mut counters = Counters::start(std::process::id());
        let first = counters.read(std::iter::empty(), &[]);
        assert!(first.iter().any(|counter| counter.name == "process.tracer_pid"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        let second = counters.read(std::iter::empty(), &[]);
        assert!(second.iter().any(|counter| counter.name.starts_with("softirq.")), "{second:?}");
        assert!(second.len() < first.len());
        for counter in second {
            let is_it = |c: &&Counter| (&c.name, &c.source) == (&counter.name, &counter.source);
            let before = first.iter().find(is_it).unwrap();
            assert!(counter.first == before.first && counter.last != before.last, "{counter:?}");
        }
    }
}
