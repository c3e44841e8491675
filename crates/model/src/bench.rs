//! What the micro-benchmarks measured.

use std::collections::BTreeMap;

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

impl BenchCase {
    /// A step in words: `2 threads`, `1 process with 10,000`.
    pub fn step_name(&self, step: &BenchStep) -> String {
        let workers = step.kind.count_in_words(step.workers);
        match self.population_of {
            Some(_) => format!("{workers} with {}", count(step.population)),
            None => workers,
        }
    }

    /// Sizes of the population, in the order of the steps.
    pub fn populations(&self) -> Vec<u64> {
        distinct(self.steps.iter().map(|step| step.population))
    }

    /// Numbers of workers, in the order of the steps.
    pub fn worker_counts(&self) -> Vec<u32> {
        distinct(self.steps.iter().map(|step| step.workers))
    }
}

/// With a comma after each three digits: `10,000`.
fn count(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

/// In order of appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Each warning of these named steps once, after the steps it is about (empty: all). Of those that
/// differ in their figures alone, the one with the largest.
pub fn merged_warnings(steps: &[(String, &BenchStep)]) -> Vec<(String, String)> {
    let mut by_text: BTreeMap<String, (&str, Vec<&str>)> = BTreeMap::new();
    for (name, step) in steps {
        for warning in &step.warnings {
            let without_figures = warning.replace(|c: char| c.is_ascii_digit(), "");
            let (worst, about) = by_text.entry(without_figures).or_default();
            // Texts that are equal but for their digits order like these if as many.
            *worst = (*worst).max(warning.as_str());
            about.push(name);
        }
    }
    by_text
        .into_values()
        .map(|(worst, about)| match about.len() {
            _ if steps.len() == about.len() => (String::new(), worst.to_owned()),
            1..=3 => (about.join(", "), worst.to_owned()),
            n => (format!("{n} of {} steps", steps.len()), worst.to_owned()),
        })
        .collect()
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

/// One rung of a ladder: so many workers with such a population.
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

    /// Time of an operation of one worker in each round, waiting included, ns.
    pub fn each_ns(&self) -> Vec<f64> {
        let workers = f64::from(self.workers);
        let rounds = self.rounds.iter().filter(|round| round.rate > 0.0);
        rounds.map(|round| workers * 1e9 / round.rate).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn step(workers: u32, population: u64, warnings: &[&str]) -> BenchStep {
        BenchStep {
            workers,
            kind: WorkerKind::Processes,
            population,
            operations: 1,
            wall_ns: 1,
            user_ns: 0,
            system_ns: 0,
            queued_ns: None,
            single: Histogram::new(PRECISION_BENCH),
            net_ns: 1.0,
            rounds: Vec::new(),
            outliers: Vec::new(),
            ended_early: false,
            warnings: warnings.iter().map(|text| (*text).to_owned()).collect(),
            accounts: None,
        }
    }

    #[test]
    fn equal_warnings_are_given_once_with_the_worst_figure() {
        let steps = [
            ("1".to_owned(), step(1, 0, &["took 1.10 times as long"])),
            ("2".to_owned(), step(2, 0, &["took 1.30 times as long"])),
            ("4".to_owned(), step(4, 0, &["took 1.20 times as long", "stolen"])),
        ];
        let named: Vec<(String, &BenchStep)> =
            steps.iter().map(|(name, step)| (name.clone(), step)).collect();
        let merged = merged_warnings(&named);
        assert!(
            merged.contains(&(String::new(), "took 1.30 times as long".to_owned())),
            "{merged:?}"
        );
        assert!(merged.contains(&("4".to_owned(), "stolen".to_owned())), "{merged:?}");
        assert_eq!(merged.len(), 2);
    }

    #[test]
    fn steps_are_named_by_what_they_differ_in() {
        let mut case = BenchCase {
            id: "t".to_owned(),
            measures: "t".to_owned(),
            population_of: None,
            steps: [(1, 999), (2, 999), (1, 1_000), (1, 1_234_567)]
                .map(|(workers, population)| step(workers, population, &[]))
                .into(),
            stopped: None,
            shape: None,
        };
        let names = |case: &BenchCase| -> Vec<String> {
            case.steps.iter().map(|step| case.step_name(step)).collect()
        };
        assert_eq!(names(&case)[1], "2 processes");
        case.population_of = Some("sockets".to_owned());
        let beside = ["999", "999", "1,000", "1,234,567"];
        assert!(names(&case).iter().zip(beside).all(|(name, n)| name.ends_with(n)), "{case:?}");
        assert_eq!(case.worker_counts(), [1, 2]);
        assert_eq!(case.populations(), [999, 1_000, 1_234_567]);
    }
}
