//! What differs between two benchmark runs, or between two checkups.

use serde::Serialize;
use stats::Interval;
use stats::ab::Change;

use crate::{RunId, WorkerKind};

/// A benchmark run against an earlier one.
#[derive(Clone, Debug, Serialize)]
pub struct BenchComparison {
    /// The first run.
    pub a: RunId,
    /// The second.
    pub b: RunId,
    /// Practical threshold: 0.05 is 5 %.
    pub threshold: f64,
    /// In one sentence.
    pub summary: String,
    /// What makes the runs less comparable.
    pub warnings: Vec<String>,
    /// Steps that both have.
    pub steps: Vec<StepComparison>,
    /// Steps that only the first has, and only the second.
    pub unmatched: [Vec<String>; 2],
}

impl BenchComparison {
    /// Steps that are slower by more than the threshold.
    pub fn slower(&self) -> usize {
        self.steps.iter().filter(|step| step.verdict == Change::Slower).count()
    }
}

/// A step of both runs.
#[derive(Clone, Debug, Serialize)]
pub struct StepComparison {
    /// The case.
    pub case: String,
    /// The step in words: `2 threads with 1,000`.
    pub step: String,
    /// Threads or processes.
    pub kind: WorkerKind,
    /// How many of them.
    pub workers: u32,
    /// Objects that existed.
    pub population: u64,
    /// The median's. The other figure includes what any other program did on the CPUs meanwhile:
    /// between equal runs it differs too often to be trusted.
    pub verdict: Change,
    /// Median of single operations.
    pub median: FigureComparison,
    /// Wall time of a worker for an operation on average, waiting included: workers over throughput.
    /// For the reader to judge.
    pub each: FigureComparison,
}

/// One figure of a step.
#[derive(Clone, Debug, Serialize)]
pub struct FigureComparison {
    /// Median over these rounds in the first run, ns.
    pub a_ns: f64,
    /// In the second.
    pub b_ns: f64,
    /// Second over first, with its 95 % interval that has the noise between runs in it.
    pub ratio: Option<Interval>,
    /// How much slower the reference computation was in the second run.
    pub machine: Option<f64>,
    /// Cost in the fastest round, second over first.
    pub fastest: Option<f64>,
    /// The test: `Mann-Whitney over rounds, exact`.
    pub test: Option<&'static str>,
    /// Two-sided.
    pub p: Option<f64>,
    /// Adjusted for the tests of this figure in all steps (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
    /// Rounds in the first run and in the second, without those on a disturbed machine.
    pub n: [usize; 2],
    /// What it amounts to.
    pub verdict: Change,
    /// Why it is insufficient.
    pub because: Option<String>,
}

/// All that differs between two checkups, two runs, or a run and now; what matters for latency
/// first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct CheckupDiff {
    /// What is compared.
    pub names: [String; 2],
    /// What differs.
    pub differences: Vec<CheckupDifference>,
    /// Checks and facts that both have.
    pub compared: usize,
    /// What could not be compared, in words.
    pub left_out: Vec<String>,
}

/// A check or a fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct CheckupDifference {
    /// Name of the check, or of the fact where no check is about it.
    pub name: String,
    /// In the first.
    pub first: String,
    /// In the second.
    pub second: String,
    /// True if it is known to matter for latency.
    pub matters: bool,
    /// True if the second is bad, and the first is not.
    pub is_bad: bool,
}
