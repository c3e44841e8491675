//! Threads that may run on some of the CPUs only: an affinity mask (taskset, numactl), or a cpuset of
//! their container.

use serde::{Deserialize, Serialize};

use crate::Sum;
use crate::sums::add_each;

/// The threads of a process that may run on these CPUs and no others, with what they did since recording
/// began. Threads that may run on all CPUs are in no such sum. Its key is (tgid, cpus).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundThreads {
    /// Process.
    pub tgid: u32,
    /// The CPUs, ascending.
    pub cpus: Vec<u32>,
    /// How many threads, those that have ended included.
    pub threads: u64,
    /// How long they were ready to run and had no CPU.
    pub waited_ns: u64,
    /// How long they ran.
    pub ran_ns: u64,
}

impl Sum for BoundThreads {
    fn key(&self) -> impl Serialize {
        (self.tgid, &self.cpus)
    }

    fn amount(&self) -> u64 {
        self.waited_ns
    }

    fn count(&self) -> u64 {
        self.threads
    }

    fn ns(&self) -> u64 {
        self.waited_ns.max(self.ran_ns)
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), None]
    }

    fn add(&mut self, other: &Self) {
        add_each!(self, other, [threads, waited_ns, ran_ns]);
    }
}
