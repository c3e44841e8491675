//! Runs that are there already.

use explain::ProofQuestion;
use model::{OwnFigure, RunId, Target, Trial, TrialSide};
use store::{Sqlite, Store};

use super::TICKS;
use crate::failure::Failure;
use crate::stored::{self, RunName, StoreOptions};

/// The first before with the first after, and so on; and the figure to judge: how far ticks are from
/// their time, or what the program printed, where a proof read that of all of them.
pub fn trials(
    store: &StoreOptions,
    before: &[RunName],
    after: &[RunName],
) -> Result<(Vec<Trial>, ProofQuestion), Failure> {
    let (before, after) = (stored::named(store, before)?, stored::named(store, after)?);
    if before.len() != after.len() {
        return Err(Failure::Usage(format!(
            "{} runs before and {} after: give as many on both sides, each next to the one that \
             was recorded nearest to it",
            before.len(),
            after.len()
        )));
    }
    let trial = |side, pair, name: &RunName| {
        let (store, run) = stored::choose(store, Some(name))?;
        must_be_provable(&store, run)?;
        let figures = stored::figures(&store, run)?;
        let wall_ns = figures.length_ns;
        Ok(Trial { side, pair, run: Some(run), wall_ns, metric: None, figures: Some(figures) })
    };
    let pairs = before.iter().zip(&after).enumerate();
    let both = pairs.flat_map(|(pair, (before, after))| {
        [trial(TrialSide::Before, pair, before), trial(TrialSide::After, pair, after)]
    });
    let mut trials = both.collect::<Result<Vec<Trial>, Failure>>()?;
    must_be_of_one_kind(&trials)?;
    let figure = figure(&mut trials);
    Ok((trials, figure))
}

/// What is judged of all of them, put into each; nothing if wall time is.
fn figure(trials: &mut [Trial]) -> ProofQuestion {
    let own = |trial: &Trial| trial.figures.as_ref()?.own.clone();
    let first = trials.first().and_then(own);
    let is_of_all = first.as_ref().is_some_and(|first| {
        let is_same = |own: OwnFigure| own.what == first.what && own.better == first.better;
        trials.iter().all(|trial| own(trial).is_some_and(is_same))
    });
    let ticks = trials.first().and_then(ticks_off_ns).is_some();
    for trial in trials.iter_mut() {
        trial.metric = match is_of_all {
            true => own(trial).map(|own| own.value),
            false => ticks_off_ns(trial).map(|ns| ns / 1e9),
        };
    }
    match first.filter(|_| is_of_all) {
        Some(first) => ProofQuestion {
            metric: Some(first.what),
            better: first.better,
            ..ProofQuestion::default()
        },
        None => ProofQuestion {
            metric: ticks.then(|| TICKS.to_owned()),
            ticks,
            ..ProofQuestion::default()
        },
    }
}

fn ticks_off_ns(trial: &Trial) -> Option<f64> {
    trial.figures.as_ref()?.ticks_off_ns
}

/// A benchmark has no cause, and a trace was not recorded.
fn must_be_provable(store: &Sqlite, run: RunId) -> Result<(), Failure> {
    let found = store.runs()?.into_iter().find(|one| one.id == run);
    match found.map(|run| run.header.target) {
        Some(target @ (Target::Bench(_) | Target::Trace(_))) => Err(Failure::Usage(format!(
            "run {run} is no recording of a program ({target}), so no cause can be shown to be \
             gone; 'whylag compare' compares benchmarks"
        ))),
        _ => Ok(()),
    }
}

/// How late ticks are cannot be compared with how long a program took.
fn must_be_of_one_kind(trials: &[Trial]) -> Result<(), Failure> {
    let one = |ticks| trials.iter().find(|trial| ticks_off_ns(trial).is_some() == ticks);
    let (Some(timers), Some(recording)) = (one(true), one(false)) else { return Ok(()) };
    let number = |trial: &Trial| trial.run.map_or_else(String::new, |run| run.to_string());
    Err(Failure::Usage(format!(
        "run {} measured timers, run {} did not: give runs of one kind",
        number(timers),
        number(recording)
    )))
}
