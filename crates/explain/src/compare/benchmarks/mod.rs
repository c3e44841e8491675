//! Two benchmark runs, step by step.
//!
//! [`stats::ab`] has the rule by which a step is called slower, and why it is so.

#[cfg(test)]
mod tests;
mod warnings;

use model::{
    BenchCase, BenchComparison, BenchRound, BenchStep, FigureComparison, Run, RunId, StepComparison,
};
use stats::ab::{self, ALPHA, Change, Difference, ENOUGH, Rounds};
use stats::{multiple, quantile};

use self::warnings::warnings;
use crate::text::{share, times};

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
pub fn compare_benchmarks(
    a: &Run,
    b: &Run,
    threshold: f64,
) -> Result<BenchComparison, NotComparable> {
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
        alone.map(|(case, step)| format!("{}: {}", case.id, case.step_name(step))).collect()
    };

    let medians = |step: &BenchStep| rounds(step, |round| Some(round.median_ns));
    let each = |step: &BenchStep| Rounds { cost: step.each_ns(), ..medians(step) };
    let sides: Vec<(Rounds, Rounds)> =
        pairs.iter().flat_map(|(_, a, b)| [(medians(a), medians(b)), (each(a), each(b))]).collect();
    let mut figures = figures(&sides, threshold).into_iter();
    let mut compared = Vec::new();
    for (case, step, _) in &pairs {
        let (Some(median), Some(each)) = (figures.next(), figures.next()) else { break };
        compared.push(StepComparison {
            case: case.id.clone(),
            step: case.step_name(step),
            kind: step.kind,
            workers: step.workers,
            population: step.population,
            verdict: median.verdict,
            median,
            each,
        });
    }
    Ok(BenchComparison {
        a: a.id,
        b: b.id,
        threshold,
        summary: summary(a.id, b.id, &compared, threshold),
        warnings: warnings(a, b, &pairs),
        unmatched: [
            unmatched(&bench_a.cases, &bench_b.cases),
            unmatched(&bench_b.cases, &bench_a.cases),
        ],
        steps: compared,
    })
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

/// All figures together, because p is adjusted for their number.
fn figures(sides: &[(Rounds, Rounds)], threshold: f64) -> Vec<FigureComparison> {
    let found: Vec<Option<Difference>> = sides.iter().map(|(a, b)| ab::compare(a, b)).collect();
    let ps: Vec<f64> = found.iter().flatten().map(|difference| difference.test.p).collect();
    let mut adjusted = multiple::benjamini_hochberg(&ps).into_iter();
    let one = |((a, b), found): (&(Rounds, Rounds), Option<Difference>)| {
        let adjusted = found.and_then(|_| adjusted.next());
        let n = found.map_or([a.cost.len(), b.cost.len()], |found| found.n);
        let all = [a, b].map(|side| quantile::median(&side.cost).unwrap_or(0.0));
        let [a_ns, b_ns] = found.map_or(all, |found| found.medians);
        let verdict = match (found, adjusted) {
            (Some(found), Some(p)) => found.change(p, threshold),
            _ => Change::Insufficient,
        };
        FigureComparison {
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
            because: (verdict == Change::Insufficient)
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
    for (verdict, word) in [(Change::Slower, "slower"), (Change::Faster, "faster")] {
        let n = of(verdict).count();
        if n == 0 {
            continue;
        }
        let named: Vec<String> = of(verdict).take(NAMED).filter_map(with_its_ratio).collect();
        let more = if n > NAMED { " and others" } else { "" };
        parts.push(format!("{word} in {n} of {all}: {}{more}", named.join(", ")));
    }
    let mut text = format!("Run {b} against run {a}: ");
    text += &if parts.is_empty() {
        format!("no difference beyond {} shown in {all}", share(threshold))
    } else {
        parts.join("; ")
    };
    match of(Change::Insufficient).count() {
        0 => text + ".",
        n => text + &format!("; {n} undecided."),
    }
}

/// `getppid, 2 threads: 1.21x (1.14x to 1.29x)`.
fn with_its_ratio(step: &StepComparison) -> Option<String> {
    let ratio = step.median.ratio?;
    let (low, high) = (times(ratio.low), times(ratio.high));
    Some(format!("{}, {}: {} ({low} to {high})", step.case, step.step, times(ratio.estimate)))
}
