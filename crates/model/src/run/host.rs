//! What was read of the host: facts, numbers that the kernel keeps, processes, CPUs.

use serde::{Deserialize, Serialize};

use crate::Sum;
use crate::sums::add_each;

/// A fact of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Fact {
    /// Stable name: `kernel.release`, `clocksource.current`, `sysctl.vm.swappiness`.
    pub name: String,
    /// Its value as read.
    pub value: String,
    /// Where it was read: a file, a system call.
    pub source: String,
}

/// A number that the kernel keeps, read when recording began and again until it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Stable name: `cgroup.cpu.nr_throttled`, `softirq.net_rx`; its unit is its last word where it
    /// is not a plain count.
    pub name: String,
    /// Where it was read: a file.
    pub source: String,
    /// First value read.
    pub first: u64,
    /// Last value read.
    pub last: u64,
}

impl Sum for Counter {
    fn key(&self) -> impl Serialize {
        (&self.name, &self.source)
    }

    fn amount(&self) -> u64 {
        0
    }

    fn count(&self) -> u64 {
        0
    }

    fn ns(&self) -> u64 {
        0
    }

    fn tgid(&self) -> Option<u32> {
        None
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [None, None]
    }

    fn add(&mut self, other: &Self) {
        self.last = self.last.max(other.last);
    }
}

impl Counter {
    /// By how much it grew.
    pub fn growth(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }
}

/// A process that was watched, or that appears as waker, holder or runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub tgid: u32,
    /// Name when last seen.
    pub comm: String,
    /// Path of the executable, empty if unknown.
    pub exe: String,
    /// GNU build id in hex, empty if unknown.
    pub build_id: String,
    /// True if its threads were watched.
    pub watched: bool,
}

/// One CPU over the run, from /proc/stat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Which.
    pub cpu: u32,
    /// Idle, including waiting for I/O.
    pub idle_ns: u64,
    /// Everything but idle and stolen.
    pub busy_ns: u64,
    /// Stolen by the hypervisor.
    pub stolen_ns: u64,
}

impl Sum for CpuTime {
    fn key(&self) -> impl Serialize {
        self.cpu
    }

    fn amount(&self) -> u64 {
        0
    }

    fn count(&self) -> u64 {
        0
    }

    fn ns(&self) -> u64 {
        self.idle_ns.saturating_add(self.busy_ns).saturating_add(self.stolen_ns)
    }

    fn tgid(&self) -> Option<u32> {
        None
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [None, None]
    }

    fn add(&mut self, other: &Self) {
        add_each!(self, other, [idle_ns, busy_ns, stolen_ns]);
    }
}
