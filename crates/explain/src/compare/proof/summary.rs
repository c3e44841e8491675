//! The first sentence: what happened to the time, and what to the cause.

use model::{CauseProof, CauseVerdict, Measured, Proof, ProofVerdict, Trial};
use stats::Interval;

use super::ProofQuestion;
use super::measured::is_contrary;
use crate::text::share;

/// Recording may change a side by this much more than the other before that is worth a warning.
const UNEVEN: f64 = 0.05;

/// Joins both verdicts.
pub fn of(proof: &Proof) -> String {
    let time = measured(&proof.measured);
    let Some(cause) = &proof.cause else {
        let verdict = verdict_in_words(proof.measured.verdict);
        return format!("{verdict}: {time}; whylag named no cause in any run.");
    };
    let is_less =
        matches!(cause.verdict, CauseVerdict::Gone | CauseVerdict::Rarer | CauseVerdict::Smaller);
    let its = of_cause(cause);
    match (proof.measured.verdict, is_less) {
        (ProofVerdict::Better, true) => format!("Proven: {time}, and {its}."),
        (ProofVerdict::Better, false) if cause.verdict == CauseVerdict::Stays => {
            format!("Better, but not because of {}: {time}; {its}.", cause.cause)
        }
        (ProofVerdict::SameWithin(_), true) => {
            format!("The cause went, {} did not: {its}; {time}.", proof.measured.what)
        }
        (verdict, _) => format!("{}: {time}; {its}.", verdict_in_words(verdict)),
    }
}

fn verdict_in_words(verdict: ProofVerdict) -> &'static str {
    match verdict {
        ProofVerdict::Better => "Better",
        ProofVerdict::Worse => "Worse",
        ProofVerdict::SameWithin(_) => "No difference",
        ProofVerdict::Insufficient => "Not decided",
    }
}

/// `wall time fell by 43 % (41 % to 45 %)`.
fn measured(measured: &Measured) -> String {
    let Measured { what, before, after, .. } = measured;
    match (measured.verdict, measured.ratio) {
        (ProofVerdict::Better | ProofVerdict::Worse, Some(ratio)) => {
            format!("{what} {}", moved(&ratio))
        }
        (ProofVerdict::Better | ProofVerdict::Worse, None) => {
            format!("{what} went from {before} to {after} (medians)")
        }
        (ProofVerdict::SameWithin(margin), _) => {
            format!("{what} is the same within {}", share(margin))
        }
        (ProofVerdict::Insufficient, Some(ratio)) => {
            format!("{what} {}, which noise may explain: {}", moved(&ratio), measured.missing)
        }
        (ProofVerdict::Insufficient, None) => format!("{what}: {}", measured.missing),
    }
}

/// `fell by 43 % (41 % to 45 %)`; an interval that holds no change has a sign on one bound.
fn moved(ratio: &Interval) -> String {
    let (word, sign) = if ratio.estimate < 1.0 { ("fell", -1.0) } else { ("rose", 1.0) };
    let by = |bound: f64| sign * (bound - 1.0);
    let (one, other) = (by(ratio.low), by(ratio.high));
    let part = |value: f64| match value < 0.0 {
        true => format!("-{}", share(-value)),
        false => share(value),
    };
    let (least, most) = (one.min(other), one.max(other));
    format!("{word} by {} ({} to {})", part(by(ratio.estimate)), part(least), part(most))
}

/// `lazy-binding is gone: it was in 10 of 10 runs before and is in 0 of 10 after`.
fn of_cause(cause: &CauseProof) -> String {
    let CauseProof { cause: id, before, after, .. } = cause;
    let runs =
        format!("in {} of {} runs before, in {} of {} after", before.0, before.1, after.0, after.1);
    let bound = format!("with 95 % confidence in less than {} of such runs", share(cause.at_most));
    match cause.verdict {
        CauseVerdict::Gone => format!("{id} is gone: {runs} ({bound})"),
        CauseVerdict::Rarer => format!("{id} is rarer: {runs} ({bound})"),
        CauseVerdict::Smaller => format!(
            "{id} takes less: {} of the wall time before, {} after ({runs})",
            share(cause.share_before),
            share(cause.share_after)
        ),
        CauseVerdict::Stays => format!("{id} stays: {runs}"),
        CauseVerdict::Came => format!("{id} came with the change: {runs}"),
        CauseVerdict::Insufficient => {
            format!("whether {id} is gone is not decided: {runs} (p = {:.2})", cause.p)
        }
    }
}

/// What makes the proof weaker.
pub fn warnings(question: &ProofQuestion, proof: &Proof, trials: &[Trial]) -> Vec<String> {
    let mut warnings = Vec::new();
    if question.seed.is_none() {
        warnings.push(
            "the order of the runs was not drawn by lot: drift of the host between the sides is \
             not excluded"
                .to_owned(),
        );
    }
    if let Some([before, after]) = proof.recording
        && (before / after - 1.0).abs() > UNEVEN
    {
        warnings.push(format!(
            "recording slows the sides unevenly: {} before, {} after",
            share(before - 1.0),
            share(after - 1.0)
        ));
    }
    if let Some(unrecorded) = &proof.unrecorded
        && proof.measured.verdict == ProofVerdict::Better
        && is_contrary(&proof.measured, unrecorded)
    {
        warnings.push(
            "the pairs that were not recorded moved the other way: the change may help only \
             while whylag records"
                .to_owned(),
        );
    }
    let failed = trials
        .iter()
        .filter_map(|trial| trial.figures.as_ref()?.exit_status)
        .filter(|status| *status != 0)
        .count();
    if failed > 0 {
        warnings.push(format!("{failed} of the recorded runs ended with an error of their own"));
    }
    warnings
}
