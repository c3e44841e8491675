//! Two benchmark runs, step by step: `whylag compare`.
//!
//! [`stats::ab`] has the rule by which a step is called slower, and why it is so.

mod facts;
#[cfg(test)]
mod tests;
mod write;

use model::units::{share, times};
use model::{BenchCase, BenchRound, BenchStep, Run, RunId, WorkerKind};
use serde::Serialize;
use stats::ab::{self, ALPHA, Difference, ENOUGH, Rounds, Verdict};
use stats::{Interval, multiple, quantile};

use crate::bench::{each_ns, step_name};

pub use write::write;

/// The second run against the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
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

/// A step of both runs.
#[derive(Clone, Debug, Serialize)]
pub struct StepComparison {
    /// The case.
    pub case: String,
    /// The step in words: `2 threads beside 1,000`.
    pub step: String,
    /// Threads or processes.
    pub kind: WorkerKind,
    /// How many of them.
    pub workers: u32,
    /// Objects that existed.
    pub population: u64,
    /// The median's. The other figure has in it what any other program did on the CPUs meanwhile:
    /// between equal runs it differs too often to be trusted.
    pub verdict: Verdict,
    /// Median of single operations.
    pub median: Judged,
    /// Wall time of a worker for an operation on average, waiting included: workers over throughput.
    /// For the reader to judge.
    pub each: Judged,
}

/// One figure of a step.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
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
    pub verdict: Verdict,
    /// Why it is insufficient.
    pub because: Option<String>,
}

/// Why two runs cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// Not a run of `whylag bench`.
    #[error("run {0} is no benchmark: only runs of 'whylag bench' can be compared so far")]
    NoBenchmark(RunId),
    /// Nothing in common.
    #[error(
        "runs {0} and {1} have no step in common: the same cases, with the same workers and \
         populations, can be compared"
    )]
    NothingInCommon(RunId, RunId),
}

/// Compares.
///
/// # Errors
/// If one of them is no benchmark, or they measured different things.
pub fn compare(a: &Run, b: &Run, threshold: f64) -> Result<Comparison, NotComparable> {
    let bench = |run: &Run| run.bench.clone().ok_or(NotComparable::NoBenchmark(run.id));
    let (bench_a, bench_b) = (bench(a)?, bench(b)?);
    let pairs: Vec<_> = steps(&bench_a.cases)
        .filter_map(|(case, step)| Some((case, step, partner(case, step, &bench_b.cases)?)))
        .collect();
    if pairs.is_empty() {
        return Err(NotComparable::NothingInCommon(a.id, b.id));
    }
    let unmatched = |of: &[BenchCase], with: &[BenchCase]| {
        let alone = steps(of).filter(|(case, step)| partner(case, step, with).is_none());
        alone.map(|(case, step)| format!("{}: {}", case.id, step_name(case, step))).collect()
    };

    let medians = |step: &BenchStep| rounds(step, |round| Some(round.median_ns));
    let each = |step: &BenchStep| Rounds { cost: each_ns(step), ..medians(step) };
    let sides: Vec<(Rounds, Rounds)> =
        pairs.iter().flat_map(|(_, a, b)| [(medians(a), medians(b)), (each(a), each(b))]).collect();
    let mut judged = judge(&sides, threshold).into_iter();
    let mut compared = Vec::new();
    for (case, step, _) in &pairs {
        let (Some(median), Some(each)) = (judged.next(), judged.next()) else { break };
        compared.push(StepComparison {
            case: case.id.clone(),
            step: step_name(case, step),
            kind: step.kind,
            workers: step.workers,
            population: step.population,
            verdict: median.verdict,
            median,
            each,
        });
    }
    Ok(Comparison {
        a: a.id,
        b: b.id,
        threshold,
        summary: summary(a.id, b.id, &compared, threshold),
        warnings: facts::warnings(a, b, &pairs),
        unmatched: [
            unmatched(&bench_a.cases, &bench_b.cases),
            unmatched(&bench_b.cases, &bench_a.cases),
        ],
        steps: compared,
    })
}

impl Comparison {
    /// Steps that are slower by more than the threshold.
    pub fn slower(&self) -> usize {
        self.steps.iter().filter(|step| step.verdict == Verdict::Slower).count()
    }
}

fn steps(cases: &[BenchCase]) -> impl Iterator<Item = (&BenchCase, &BenchStep)> {
    cases.iter().flat_map(|case| case.steps.iter().map(move |step| (case, step)))
}

/// The same step among `cases`.
fn partner<'a>(
    case: &BenchCase,
    step: &BenchStep,
    cases: &'a [BenchCase],
) -> Option<&'a BenchStep> {
    let is_same = |other: &BenchStep| {
        (other.kind, other.workers, other.population) == (step.kind, step.workers, step.population)
    };
    steps(cases).find(|(of, other)| of.id == case.id && is_same(other)).map(|(_, other)| other)
}

fn rounds(step: &BenchStep, cost: impl Fn(&BenchRound) -> Option<f64>) -> Rounds {
    Rounds {
        cost: step.rounds.iter().filter_map(cost).collect(),
        reference: step.rounds.iter().map(|round| round.reference_ns).collect(),
    }
}

/// Judges all together, because p is adjusted for their number.
fn judge(sides: &[(Rounds, Rounds)], threshold: f64) -> Vec<Judged> {
    let found: Vec<Option<Difference>> = sides.iter().map(|(a, b)| ab::compare(a, b)).collect();
    let ps: Vec<f64> = found.iter().flatten().map(|difference| difference.test.p).collect();
    let mut adjusted = multiple::benjamini_hochberg(&ps).into_iter();
    let one = |((a, b), found): (&(Rounds, Rounds), Option<Difference>)| {
        let adjusted = found.and_then(|_| adjusted.next());
        let n = found.map_or([a.cost.len(), b.cost.len()], |found| found.n);
        let all = [a, b].map(|side| quantile::median(&side.cost).unwrap_or(0.0));
        let [a_ns, b_ns] = found.map_or(all, |found| found.medians);
        let verdict = match (found, adjusted) {
            (Some(found), Some(p)) => found.verdict(p, threshold),
            _ => Verdict::Insufficient,
        };
        Judged {
            a_ns,
            b_ns,
            ratio: found.map(|found| found.ratio),
            machine: found.map(|found| found.machine),
            fastest: found.map(|found| found.fastest),
            test: found.map(|found| match found.test.exact {
                true => "Mann-Whitney over rounds, exact",
                false => "Mann-Whitney over rounds, normal approximation",
            }),
            p: found.map(|found| found.test.p),
            p_adjusted: adjusted,
            n,
            verdict,
            because: (verdict == Verdict::Insufficient)
                .then(|| because(n, found, adjusted, threshold)),
        }
    };
    sides.iter().zip(found).map(one).collect()
}

fn because(
    n: [usize; 2],
    found: Option<Difference>,
    adjusted: Option<f64>,
    threshold: f64,
) -> String {
    let [a, b] = n;
    match (found, adjusted) {
        _ if a < ENOUGH || b < ENOUGH => {
            format!("{a} + {b} rounds; it takes {ENOUGH} + {ENOUGH}")
        }
        (Some(_), Some(p)) if p > ALPHA => "the rounds of both overlap".to_owned(),
        (Some(found), _) if (found.machine - 1.0).abs() > threshold => {
            format!("the machine itself took {} as long", times(found.machine))
        }
        (Some(found), _)
            if (1.0 / (1.0 + threshold)..=1.0 + threshold).contains(&found.fastest) =>
        {
            "the fastest rounds of both are alike: something disturbed the others".to_owned()
        }
        (Some(_), _) => format!(
            "beyond {}, but equal runs differ as much now and then: repeat both",
            share(threshold)
        ),
        (None, _) => "it cost nothing that could be measured".to_owned(),
    }
}

/// The first steps that differ are named in the summary.
const NAMED: usize = 3;

fn summary(a: RunId, b: RunId, steps: &[StepComparison], threshold: f64) -> String {
    let of = |verdict| steps.iter().filter(move |step| step.verdict == verdict);
    let all = match steps.len() {
        1 => "the only step".to_owned(),
        n => format!("{n} steps"),
    };
    let mut parts = Vec::new();
    for (verdict, word) in [(Verdict::Slower, "slower"), (Verdict::Faster, "faster")] {
        let n = of(verdict).count();
        if n == 0 {
            continue;
        }
        let named: Vec<String> = of(verdict).take(NAMED).filter_map(in_words).collect();
        let more = if n > NAMED { " and others" } else { "" };
        parts.push(format!("{word} in {n} of {all}: {}{more}", named.join(", ")));
    }
    let mut text = format!("Run {b} against run {a}: ");
    text += &if parts.is_empty() {
        format!("no difference beyond {} shown in {all}", share(threshold))
    } else {
        parts.join("; ")
    };
    match of(Verdict::Insufficient).count() {
        0 => text + ".",
        n => text + &format!("; {n} undecided."),
    }
}

/// `getppid, 2 threads: 1.21x (1.14x to 1.29x)`.
fn in_words(step: &StepComparison) -> Option<String> {
    let ratio = step.median.ratio?;
    let (low, high) = (times(ratio.low), times(ratio.high));
    Some(format!("{}, {}: {} ({low} to {high})", step.case, step.step, times(ratio.estimate)))
}
