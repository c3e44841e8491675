//! What `whylag doctor` says of a host and of a process.

use serde::{Deserialize, Serialize};

use crate::Fact;

/// What a check is about; the order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Clocks and timers.
    Time,
    /// What the kernel has said.
    KernelLog,
    /// CPUs and the scheduler.
    Cpu,
    /// Memory.
    Memory,
    /// Disks, file systems, consoles.
    Io,
    /// Network.
    Network,
    /// How many there are of things that the kernel walks through.
    Populations,
    /// One process.
    Process,
    /// What whylag itself can do here.
    Recorder,
}

/// How a check came out; worse is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    /// Nothing to do.
    Good,
    /// It is not known on this host, or not with these privileges.
    Unknown,
    /// It can cost latency; whether it does, a recording shows.
    Attention,
    /// It does cost latency.
    Bad,
}

/// What it takes for a check of two hosts to differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// Another fact: somebody chose it.
    Setting,
    /// A number that is at least half as much again: it is measured, and no two are the same.
    Measure(f64),
    /// Another verdict: the fact changes by itself.
    Passing,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name, unique in a checkup: `clocksource`, `lazy-binding`.
    pub id: String,
    /// What it is about.
    pub subject: Subject,
    /// How it came out.
    pub verdict: CheckResult,
    /// What was found, in a few words; of an unknown one the reason.
    pub fact: String,
    /// More of what was found; may be empty.
    pub detail: String,
    /// Why it matters for latency.
    pub why: String,
    /// What to do about it; empty if there is nothing to do.
    pub advice: String,
    /// Where it was read: a file, a system call.
    pub source: String,
    /// What it takes for two to differ.
    pub compared: Compared,
}

/// Calls of a library that are not bound yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unbound {
    /// Path of the library, as the process sees it.
    pub library: String,
    /// Slots of its PLT.
    pub slots: usize,
    /// Symbols of those that are not bound yet.
    pub symbols: Vec<String>,
    /// Why that is not known; empty if it is.
    pub unknown_because: String,
}

/// All checks of a host, and of a process if one was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkup {
    /// Version of whylag.
    pub version: String,
    /// Name of the host.
    pub host: String,
    /// When, nanoseconds since 1970-01-01 UTC.
    pub taken_unix_ns: i64,
    /// The process, if one was asked for.
    pub pid: Option<u32>,
    /// The checks, by subject.
    pub checks: Vec<Check>,
    /// The fingerprint that every run carries as well.
    pub facts: Vec<Fact>,
    /// Libraries of the process with a PLT.
    pub unbound: Vec<Unbound>,
}

impl Checkup {
    /// How many checks came out so.
    pub fn count(&self, verdict: CheckResult) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }
}
