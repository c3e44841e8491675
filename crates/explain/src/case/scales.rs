//! What samples on a CPU stand for.
//!
//! What a process's samples of an account stand for is scaled so that together they are that
//! account's exact time. So a claim made of samples is never more than was measured, and timers
//! that fired late do not count twice. Processes with few samples are scaled together: of a
//! thousand children that live half a millisecond each, most have none at all, and the samples of
//! the others stand for those, too.

use std::collections::BTreeMap;

use model::{Account, Accounts, PathSum, Run, part_of};

/// A process with fewer samples of an account is scaled together with others like it.
const SAMPLES_OF_ONE: u64 = 20;

/// What the samples of an account stand for: `sampled` ns are `exact` ns.
#[derive(Clone, Copy, Debug, Default)]
struct Scale {
    samples: u64,
    sampled: u64,
    exact: u64,
}

impl Scale {
    fn add(&mut self, other: Scale) {
        self.samples = self.samples.saturating_add(other.samples);
        self.sampled = self.sampled.saturating_add(other.sampled);
        self.exact = self.exact.saturating_add(other.exact);
    }
}

/// Scales of all samples of a run.
pub(crate) struct Scales {
    processes: BTreeMap<(u32, Account), Scale>,
    /// Those with few samples or none, together.
    others: BTreeMap<Account, Scale>,
}

impl Scales {
    pub(crate) fn new(run: &Run, processes: &BTreeMap<u32, Accounts>) -> Self {
        let mut all = BTreeMap::<(u32, Account), Scale>::new();
        for (tgid, accounts) in processes {
            for (account, exact) in accounts.iter() {
                all.insert((*tgid, account), Scale { exact, ..Scale::default() });
            }
        }
        for path in run.sums.paths.iter().filter(|path| path.sampled) {
            let more = Scale { samples: path.count, sampled: path.ns, exact: 0 };
            all.entry((path.tgid, path.account)).or_default().add(more);
        }
        let mut others = BTreeMap::<Account, Scale>::new();
        for ((_, account), scale) in &all {
            if scale.samples < SAMPLES_OF_ONE {
                others.entry(*account).or_default().add(*scale);
            }
        }
        all.retain(|_, scale| scale.samples >= SAMPLES_OF_ONE);
        Scales { processes: all, others }
    }

    /// The time that the samples of a path stand for.
    pub(crate) fn exact_ns(&self, path: &PathSum) -> u64 {
        let scale = self.of(path);
        part_of(scale.exact, path.ns, scale.sampled)
    }

    fn of(&self, path: &PathSum) -> Scale {
        let own = self.processes.get(&(path.tgid, path.account));
        own.or_else(|| self.others.get(&path.account)).copied().unwrap_or_default()
    }
}
