//! The kernel's own counters, read when recording begins and with each batch.

use std::collections::{BTreeMap, BTreeSet};

use inspect::counters::{self, Reading};
use model::Counter;

/// Processes of a recording whose counters are read, at most: each takes about 100 us.
const PROCESSES: usize = 16;

/// First and last value by (name, file).
pub struct Counters {
    target: u32,
    known: BTreeMap<(String, String), (u64, u64)>,
}

impl Counters {
    /// Reads them the first time; `target` is 0 for the whole host.
    pub fn start(target: u32) -> Counters {
        let mut counters = Counters { target, known: BTreeMap::new() };
        counters.read(std::iter::empty());
        counters
    }

    /// Reads them again, those of these processes as well. A counter that is first seen now starts
    /// here; one whose file has gone keeps its last value.
    pub fn read(&mut self, watched: impl Iterator<Item = u32>) -> Vec<Counter> {
        self.note(counters::host());
        let processes: BTreeSet<u32> = watched.chain([self.target]).collect();
        for process in processes.into_iter().filter(|pid| *pid != 0).take(PROCESSES) {
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
