//! The figure that should become better: wall time, or what the program prints.

use model::{Better, Measured, ProofVerdict};
use stats::paired::{self, ALPHA, LEAST_PAIRS, Paired};
use stats::quantile;

use super::{Pair, ProofQuestion};
use crate::text::share;

/// Smaller changes do not matter, however sure they are.
const LEAST_CHANGE: f64 = 0.01;
/// Up to this p a change is called so, whatever the few pairs say that were not recorded.
const SURE: f64 = 0.01;
/// An interval within this part of no change shows that there is none that matters.
const SAME: f64 = 0.05;

/// What the pairs say of the figure.
pub fn of(question: &ProofQuestion, pairs: &[Pair<'_>]) -> Measured {
    let value = |trial: &model::Trial| match question.metric {
        Some(_) => trial.metric.unwrap_or(f64::NAN),
        None => trial.wall_ns as f64 / 1e9,
    };
    let values: Vec<(f64, f64)> =
        pairs.iter().map(|pair| (value(pair.before), value(pair.after))).collect();
    let side = |side: fn(&(f64, f64)) -> f64| {
        quantile::median(&values.iter().map(side).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let (before, after) = (side(|pair| pair.0), side(|pair| pair.1));
    let compared = paired::compare(&values);
    let differences: Vec<f64> = values.iter().map(|(before, after)| after - before).collect();
    let p = compared.map_or_else(|| paired::difference_p(&differences), |paired| Some(paired.p));
    let (verdict, missing) = match (compared, p) {
        (Some(paired), _) => judged(&paired, question.better),
        (None, Some(p)) => judged_by_difference(p, before, after, question.better),
        (None, None) => {
            let pairs = values.len();
            let missing = format!("{pairs} whole pairs; it takes {LEAST_PAIRS} at least");
            (ProofVerdict::Insufficient, missing)
        }
    };
    Measured {
        what: question.metric.clone().unwrap_or_else(|| "wall time".to_owned()),
        better: question.better,
        before,
        after,
        ratio: compared.map(|paired| paired.ratio),
        p,
        pairs: values.len(),
        verdict,
        missing,
    }
}

/// A change that chance makes in one of twenty equal programs has to be there without whylag, too; a
/// surer one stays, with a warning.
pub fn confirmed(measured: Measured, unrecorded: Option<&Measured>) -> Measured {
    let is_change = matches!(measured.verdict, ProofVerdict::Better | ProofVerdict::Worse);
    let is_sure = measured.p.is_some_and(|p| p <= SURE);
    if !is_change || is_sure || !unrecorded.is_some_and(|other| is_contrary(&measured, other)) {
        return measured;
    }
    let missing = "the pairs that were not recorded moved the other way: more pairs would show which \
                   is so";
    Measured { verdict: ProofVerdict::Insufficient, missing: missing.to_owned(), ..measured }
}

/// One became larger, the other smaller.
pub fn is_contrary(recorded: &Measured, unrecorded: &Measured) -> bool {
    let moved = |measured: &Measured| measured.after - measured.before;
    moved(recorded) * moved(unrecorded) < 0.0
}

/// The verdict, and what is missing where it is none.
fn judged(paired: &Paired, better: Better) -> (ProofVerdict, String) {
    let ratio = paired.ratio;
    let is_change = paired.p <= ALPHA && (ratio.estimate - 1.0).abs() >= LEAST_CHANGE;
    let margin = (1.0 - ratio.low).max(ratio.high - 1.0);
    if is_change {
        let is_better = (ratio.estimate < 1.0) == (better == Better::Lower);
        let verdict = if is_better { ProofVerdict::Better } else { ProofVerdict::Worse };
        (verdict, String::new())
    } else if margin <= SAME {
        (ProofVerdict::SameWithin(margin.max(0.001)), String::new())
    } else {
        // Enough to see what is there, or that nothing is.
        let wanted = (ratio.estimate.ln().abs() * 0.8).clamp(LEAST_CHANGE, SAME);
        let more = paired.pairs_for(wanted).saturating_sub(paired.n).max(1);
        let missing = format!(
            "pairs differ by {} from each other; about {more} more pairs would show a change of {}",
            share(paired.noise),
            share(wanted)
        );
        (ProofVerdict::Insufficient, missing)
    }
}

/// Of values that may be zero, such as counts of drops: by their differences.
fn judged_by_difference(p: f64, before: f64, after: f64, better: Better) -> (ProofVerdict, String) {
    if p <= ALPHA && before != after {
        let is_better = (after < before) == (better == Better::Lower);
        return (if is_better { ProofVerdict::Better } else { ProofVerdict::Worse }, String::new());
    }
    if before == after && p >= 1.0 {
        return (ProofVerdict::SameWithin(0.0), String::new());
    }
    (ProofVerdict::Insufficient, "values with zeros among them overlap".to_owned())
}
