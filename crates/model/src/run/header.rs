//! What a run is known by: its number, what was watched, how it stands, when it began and ended.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Number of a run in its store, from 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What was watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A command that whylag started.
    Command(Vec<String>),
    /// All threads of a process.
    Process(u32),
    /// One thread.
    Thread(u32),
    /// Every thread of the host.
    #[default]
    Host,
    /// All processes of a systemd unit.
    Unit(String),
    /// All processes of a container, by the beginning of its id.
    Container(String),
    /// All processes of a cgroup, by its path.
    Cgroup(String),
    /// Micro-benchmarks; the words of the command line.
    Bench(Vec<String>),
    /// Timers; the words of the command line.
    Jitter(Vec<String>),
    /// The trace file that a program left, of its messages.
    Trace(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Command(words) => f.write_str(&words.join(" ")),
            Target::Process(pid) => write!(f, "pid {pid}"),
            Target::Thread(tid) => write!(f, "tid {tid}"),
            Target::Host => f.write_str("all of the host"),
            Target::Unit(unit) => write!(f, "unit {unit}"),
            Target::Container(id) => write!(f, "container {id}"),
            Target::Cgroup(path) => write!(f, "cgroup {path}"),
            Target::Bench(words) => write!(f, "bench {}", words.join(" ")),
            Target::Jitter(words) => write!(f, "jitter {}", words.join(" ")),
            Target::Trace(path) => write!(f, "trace {path}"),
        }
    }
}

/// How a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Being recorded now.
    #[default]
    Recording,
    /// Ended properly.
    Complete,
    /// The recorder died or its disk was full: all up to the last second is there.
    Interrupted,
}

/// Known when a run begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Wall-clock start, nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// The same moment on CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// What is watched.
    pub target: Target,
    /// True if children are watched as well.
    pub follow: bool,
    /// Outlier threshold.
    pub threshold_ns: u64,
    /// True if thread states were sampled from /proc instead of recorded.
    pub sampled: bool,
    /// Process id of the recorder.
    pub recorder_pid: u32,
    /// Version of whylag.
    pub version: String,
    /// What the user calls the run: `build=42`, `set=before`.
    #[serde(default)]
    pub labels: Labels,
}

/// Names and values that the user gave a run.
pub type Labels = BTreeMap<String, String>;

/// Known when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When recording stopped.
    pub ended_ns: u64,
    /// Exit status of the command, as a shell reports it (128 + signal).
    pub exit_status: Option<i32>,
    /// Why recording ended, in words.
    pub reason: String,
}

/// A line of `whylag runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Number.
    pub id: RunId,
    /// Header.
    pub header: RunHeader,
    /// Status.
    pub status: RunStatus,
    /// Length so far.
    pub length_ns: u64,
    /// Threads seen.
    pub threads: u64,
    /// Outliers kept.
    pub outliers: u64,
    /// What it takes in its store, approximately.
    #[serde(default)]
    pub bytes: u64,
    /// The first finding's cause, if it was explained.
    pub leading_cause: Option<String>,
    /// The file that it was imported from.
    #[serde(default)]
    pub origin: Option<Origin>,
}

/// Where an imported run comes from. The name of its host is a fact, `host.name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the file.
    pub file: String,
    /// Its number in the store that it was recorded into.
    pub number: RunId,
}
