//! Did the change make the program faster, and is its cause gone?
//!
//! Pairs of executions, one of each side, in an order drawn by lot inside each pair: [`stats::paired`]
//! says why nothing else may be assumed of their noise. The time and the cause are judged each by a
//! test of its own, and the first sentence joins the two: a program that became faster while its
//! cause stays, or the other way round, has another explanation.

mod causes;
mod differences;
mod measured;
mod profile;
mod summary;
#[cfg(test)]
mod tests;

use model::{Better, Measured, Proof, RunFigures, Trial, TrialSide};
use stats::quantile;

/// What a proof is asked.
#[derive(Clone, Debug, Default)]
pub struct ProofQuestion {
    /// What was changed, in words.
    pub change: String,
    /// Facts that were meant to differ: `env.LD_BIND_NOW`.
    pub meant: Vec<String>,
    /// The program's own figure by its name; `None`: wall time.
    pub metric: Option<String>,
    /// The figure is of ticks: how long a run takes says nothing.
    pub ticks: bool,
    /// Which values of it are better.
    pub better: Better,
    /// The cause that should be gone; `None`: the one that takes most before.
    pub cause: Option<String>,
    /// Seed of the order inside pairs; `None`: the order was not drawn.
    pub seed: Option<u64>,
}

/// Judges executions.
pub fn prove(question: &ProofQuestion, trials: Vec<Trial>) -> Proof {
    let recorded = pairs(&trials, true);
    let unrecorded = pairs(&trials, false);
    let figure = |pairs: &[Pair<'_>]| measured::of(question, pairs);
    let figures: Vec<(&RunFigures, &RunFigures)> = recorded
        .iter()
        .filter_map(|pair| Some((pair.before.figures.as_ref()?, pair.after.figures.as_ref()?)))
        .collect();
    let mut causes = causes::all(&figures);
    let asked = question.cause.clone().or_else(|| causes::leading(&figures));
    let cause = asked.map(|id| match causes.iter().position(|cause| cause.cause == id) {
        Some(place) => causes.remove(place),
        None => causes::of(&id, &figures),
    });
    let unrecorded_figure = (!unrecorded.is_empty()).then(|| figure(&unrecorded));
    let measured = measured::confirmed(figure(&recorded), unrecorded_figure.as_ref());
    let mut proof = Proof {
        summary: String::new(),
        change: question.change.clone(),
        seed: question.seed,
        measured,
        unrecorded: unrecorded_figure,
        recording: recording(&recorded, &unrecorded).filter(|_| !question.ticks),
        cause,
        other_causes: causes,
        accounts: profile::accounts(&figures),
        latencies: profile::latencies(&figures),
        differences: differences::all(question, &figures),
        warnings: Vec::new(),
        trials: Vec::new(),
    };
    proof.warnings = summary::warnings(question, &proof, &trials);
    proof.summary = summary::of(&proof);
    proof.trials = trials;
    proof
}

/// What the recorded pairs say of the figure so far, and nothing else.
pub fn measured(question: &ProofQuestion, trials: &[Trial]) -> Measured {
    measured::of(question, &pairs(trials, true))
}

/// Two executions that were made next to each other.
struct Pair<'a> {
    before: &'a Trial,
    after: &'a Trial,
}

/// The whole pairs, of those that were recorded or of those that were not.
fn pairs(trials: &[Trial], recorded: bool) -> Vec<Pair<'_>> {
    let of = |side| {
        trials.iter().filter(move |trial| trial.side == side && trial.figures.is_some() == recorded)
    };
    let whole = of(TrialSide::Before).filter_map(|before| {
        let after = of(TrialSide::After).find(|after| after.pair == before.pair)?;
        Some(Pair { before, after })
    });
    whole.collect()
}

/// How much longer an execution takes while it is recorded, on each side.
fn recording(recorded: &[Pair<'_>], unrecorded: &[Pair<'_>]) -> Option<[f64; 2]> {
    let median = |pairs: &[Pair<'_>], side: fn(&Pair<'_>) -> u64| {
        let times: Vec<f64> = pairs.iter().map(|pair| side(pair) as f64).collect();
        quantile::median(&times).filter(|time| *time > 0.0)
    };
    let sides: [fn(&Pair<'_>) -> u64; 2] = [|pair| pair.before.wall_ns, |pair| pair.after.wall_ns];
    let [before, after] =
        sides.map(|side| Some(median(recorded, side)? / median(unrecorded, side)?));
    Some([before?, after?])
}
