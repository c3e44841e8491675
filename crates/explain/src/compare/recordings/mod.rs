//! Two sets of recordings: what differs around them, where their time went, which causes they have,
//! and how their latencies moved.
//!
//! Sums are exact: those of the accounts of a side are its wall time, to the nanosecond, and are shown
//! per unit of work, so that sets of another size can be compared. The run is the sample: with fewer
//! than [`LEAST_RUNS`] on a side no test is made, and nothing is said to differ.

mod parts;
#[cfg(test)]
mod tests;

use model::{ComparedSide, RunFigures, RunHeader, RunId, RunsComparison, Target};
use stats::shift::LEAST_RUNS;

use crate::text::share;

/// A run of one of the sides.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    /// Its number.
    pub id: RunId,
    /// What was watched, and how.
    pub header: RunHeader,
    /// What it says.
    pub figures: RunFigures,
}

/// One of the sides: what the user calls it, and its runs.
#[derive(Clone, Debug)]
pub struct Compared {
    /// For people.
    pub name: String,
    /// At least one.
    pub runs: Vec<ComparedRun>,
}

/// Why recordings cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotCompare {
    /// A benchmark among recordings.
    #[error("run {0} is a benchmark: compare it with one other run of 'whylag bench'")]
    Benchmark(RunId),
    /// Timers or the messages of a program that died.
    #[error("run {0} is no recording of threads ({1}): 'whylag record' makes one")]
    NoRecording(RunId, String),
    /// One of them was sampled, another one recorded.
    #[error(
        "run {0} was sampled from /proc and run {1} recorded: their times do not mean the same; \
         record both as root"
    )]
    SampledAndRecorded(RunId, RunId),
}

/// A side as the parts of a comparison read it.
struct Side<'a> {
    runs: Vec<&'a RunFigures>,
    /// Units of work of each run.
    units: Vec<u64>,
}

/// Compares `b` with the baseline `a`.
///
/// # Errors
/// If runs are among them whose times do not mean the same.
pub fn compare_recordings(a: &Compared, b: &Compared) -> Result<RunsComparison, CannotCompare> {
    check(a, b)?;
    let unit = parts::unit(a.runs.iter().chain(&b.runs).map(|run| &run.figures));
    let units = |compared: &Compared| -> Vec<u64> {
        compared.runs.iter().map(|run| parts::units(&run.figures, unit.as_deref())).collect()
    };
    let sides = [a, b].map(|compared| Side {
        runs: compared.runs.iter().map(|run| &run.figures).collect(),
        units: units(compared),
    });
    let described = |compared: &Compared, side: &Side<'_>| ComparedSide {
        name: compared.name.clone(),
        runs: compared.runs.iter().map(|run| run.id).collect(),
        wall_ns: side.runs.iter().flat_map(|figures| figures.accounts.values()).sum(),
        units: side.units.iter().sum(),
    };
    let (of_a, of_b) = (described(a, &sides[0]), described(b, &sides[1]));
    let mut comparison = RunsComparison {
        summary: String::new(),
        unit: unit.unwrap_or_else(|| "run".to_owned()),
        differences: parts::differences(&sides),
        accounts: parts::accounts(&sides, &of_a, &of_b),
        causes: parts::causes(&sides),
        latencies: parts::latencies(&sides),
        warnings: warnings(a, b),
        a: of_a,
        b: of_b,
    };
    comparison.summary = summary(&comparison);
    Ok(comparison)
}

/// False of benchmarks, timers and traces without the recorder.
pub fn is_recording(header: &RunHeader) -> bool {
    !matches!(header.target, Target::Bench(_) | Target::Jitter(_) | Target::Trace(_))
}

fn check(a: &Compared, b: &Compared) -> Result<(), CannotCompare> {
    let all = || a.runs.iter().chain(&b.runs);
    for run in all() {
        match &run.header.target {
            Target::Bench(_) => return Err(CannotCompare::Benchmark(run.id)),
            target @ (Target::Jitter(_) | Target::Trace(_)) => {
                return Err(CannotCompare::NoRecording(run.id, target.to_string()));
            }
            _ => {}
        }
    }
    let sampled = all().find(|run| run.header.sampled);
    let recorded = all().find(|run| !run.header.sampled);
    match (sampled, recorded) {
        (Some(sampled), Some(recorded)) => {
            Err(CannotCompare::SampledAndRecorded(sampled.id, recorded.id))
        }
        _ => Ok(()),
    }
}

fn warnings(a: &Compared, b: &Compared) -> Vec<String> {
    let mut warnings = Vec::new();
    let (n_a, n_b) = (a.runs.len(), b.runs.len());
    if n_a.min(n_b) < LEAST_RUNS {
        warnings.push(format!(
            "{n_a} and {n_b} runs: how much runs differ by themselves is not known, so nothing is \
             shown to differ; that takes {LEAST_RUNS} on each side ('whylag prove' makes pairs of \
             them)"
        ));
    } else if n_a != n_b {
        warnings.push(format!("{n_a} and {n_b} runs: sums are compared per unit of work"));
    }
    let target = |compared: &Compared| compared.runs[0].header.target.to_string();
    let (of_a, of_b) = (target(a), target(b));
    if of_a != of_b {
        warnings.push(format!("not the same was watched: {of_a}; {of_b}"));
    }
    let thresholds = |compared: &Compared| compared.runs[0].header.threshold_ns;
    if thresholds(a) != thresholds(b) {
        warnings.push("the sides were recorded with another --threshold".to_owned());
    }
    let failed = |run: &&ComparedRun| run.figures.exit_status.is_some_and(|status| status != 0);
    let failed = a.runs.iter().chain(&b.runs).filter(failed).count();
    if failed > 0 {
        warnings.push(format!("{failed} of the runs ended with an error of their own"));
    }
    let lost = |run: &&ComparedRun| run.figures.losses.values().any(|count| *count > 0);
    let lost = a.runs.iter().chain(&b.runs).filter(lost).count();
    if lost > 0 {
        warnings.push(format!("{lost} of the runs lost events: 'whylag show' says which"));
    }
    warnings
}

/// `time per run rose by 12 %, most of it blocked:futex; lazy-binding went (5 of 5 runs, 0 of 5)`.
fn summary(comparison: &RunsComparison) -> String {
    let RunsComparison { a, b, unit, accounts, causes, .. } = comparison;
    let (before, after) = (a.per_unit(a.wall_ns), b.per_unit(b.wall_ns));
    let moved = if before > 0.0 { after / before - 1.0 } else { 0.0 };
    let verb = if moved < 0.0 { "less" } else { "more" };
    let mut words =
        format!("{} has {} {verb} time per {unit} than {}", b.name, share(moved.abs()), a.name);
    if let Some(first) = accounts.first() {
        words += &format!(", and {} changed most", first.account);
    }
    let is_shown = |p: Option<f64>| p.is_some_and(|p| p <= stats::paired::ALPHA);
    for cause in causes.iter().filter(|cause| is_shown(cause.p)) {
        let verb = if cause.runs[0] > cause.runs[1] { "went" } else { "came" };
        let [x, y] = cause.runs;
        let (all_a, all_b) = (a.runs.len(), b.runs.len());
        words += &format!("; {} {verb} (in {x} of {all_a} runs, in {y} of {all_b})", cause.cause);
    }
    words + "."
}
