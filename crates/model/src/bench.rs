//! What the micro-benchmarks measured.

use serde::{Deserialize, Serialize};

use crate::{Accounts, Histogram};

/// Precision of the histograms of benchmarks: buckets 0.78 % wide.
pub const PRECISION_BENCH: u8 = 7;

/// A run of `whylag bench`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bench {
    /// The clock around each operation, in words.
    pub clock: String,
    /// True if worker i was bound to the i-th CPU.
    pub pinned: bool,
    /// The empty operation: what clock and harness cost.
    pub empty: BenchStep,
    /// The cases, in the order they were asked for.
    pub cases: Vec<BenchCase>,
}

/// A case and its ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchCase {
    /// Stable name, as on the command line.
    pub id: String,
    /// What it measures, in one line.
    pub measures: String,
    /// What the population consists of (`open AF_UNIX sockets`), if it has one.
    pub population_of: Option<String>,
    /// The rungs that were measured, in order.
    pub steps: Vec<BenchStep>,
    /// Why the ladder ended before its last rung, or the case could not run.
    pub stopped: Option<String>,
    /// For a case from a story: is the story's shape there?
    pub shape: Option<StoryShape>,
}

/// Whether a kernel behaves as the one in a story did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoryShape {
    /// True if it does.
    pub present: bool,
    /// What the story saw and what was seen here.
    pub text: String,
}

/// Threads of one process, or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerKind {
    /// Threads of one process.
    Threads,
    /// Processes.
    Processes,
}

impl WorkerKind {
    /// `thread` or `process`, for `n` of them: `1 thread`, `2 processes`.
    pub fn count_in_words(self, n: u32) -> String {
        match (self, n) {
            (WorkerKind::Threads, 1) => "1 thread".to_owned(),
            (WorkerKind::Threads, n) => format!("{n} threads"),
            (WorkerKind::Processes, 1) => "1 process".to_owned(),
            (WorkerKind::Processes, n) => format!("{n} processes"),
        }
    }
}

/// One rung of a ladder: so many workers beside such a population.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchStep {
    /// Workers.
    pub workers: u32,
    /// Threads or processes.
    pub kind: WorkerKind,
    /// How many objects existed meanwhile.
    pub population: u64,
    /// Operations of all workers.
    pub operations: u64,
    /// Wall time of the rounds together, each from its first worker's first operation to its last
    /// one's last.
    pub wall_ns: u64,
    /// CPU time in user mode, all workers.
    pub user_ns: u64,
    /// CPU time in the kernel, all workers.
    pub system_ns: u64,
    /// Ready to run, but without a CPU, all workers; `None` where the kernel does not count it.
    pub queued_ns: Option<u64>,
    /// Single operations, the clock's own cost included.
    pub single: Histogram,
    /// Cost of an operation without the clock's: the median of two together minus that of one, ns.
    pub net_ns: f64,
    /// The samples of its statistics.
    pub rounds: Vec<BenchRound>,
    /// The longest single operations, longest first.
    pub outliers: Vec<BenchOutlier>,
    /// True if it ended before its time because the interval of the median was tight.
    pub ended_early: bool,
    /// What disturbed it.
    pub warnings: Vec<String>,
    /// Where the workers' time went, if they were recorded.
    pub accounts: Option<Accounts>,
}

impl BenchStep {
    /// Operations per second of all workers together.
    pub fn rate(&self) -> f64 {
        self.operations as f64 * 1e9 / self.wall_ns.max(1) as f64
    }
}

/// A part of a step. The rounds of a ladder's steps take turns, so that a machine that becomes
/// slower does so for all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRound {
    /// When its gate opened, CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// When its last worker stopped, CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// Median of its single operations, ns.
    pub median_ns: f64,
    /// Operations per second of all workers.
    pub rate: f64,
    /// Time of a fixed computation just before or after it, the longer one, ns: the speed of the
    /// machine itself.
    pub reference_ns: f64,
}

/// A long operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchOutlier {
    /// Which worker's.
    pub worker: u32,
    /// When it began, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// How long it took.
    pub ns: u64,
}
