//! Is a cause gone? By how many runs have it, and by how much it takes where it stays.

use std::collections::{BTreeMap, BTreeSet};

use model::{CauseFigure, CauseProof, CauseVerdict, RunFigures};
use stats::paired::{self, ALPHA, Paired};
use stats::proportion::{Count, fisher, upper_bound};

/// A cause that as many runs have is smaller if it takes, surely, at least so much less. What it takes is
/// mostly what the figure measures: of a program against itself noise moves both at once, so that
/// one of some forty would be called proven if any sure difference were enough.
const LEAST_LESS: f64 = 0.1;

/// (before, after) of a pair.
type Figures<'a> = (&'a RunFigures, &'a RunFigures);

/// All causes that any run names, those that take most before first.
pub fn all(pairs: &[Figures<'_>]) -> Vec<CauseProof> {
    let named = pairs.iter().flat_map(|(before, after)| before.causes.iter().chain(&after.causes));
    let ids: BTreeSet<&str> =
        named.filter(|figure| !figure.minor).map(|figure| figure.cause.as_str()).collect();
    let mut causes: Vec<CauseProof> = ids.into_iter().map(|id| of(id, pairs)).collect();
    causes.sort_by(|a, b| b.share_before.total_cmp(&a.share_before));
    causes
}

/// The cause that most runs name first before; if none names one, after.
pub fn leading(pairs: &[Figures<'_>]) -> Option<String> {
    let most_often = |side: &dyn Fn(&Figures<'_>) -> Option<String>| {
        let mut times = BTreeMap::<String, usize>::new();
        for cause in pairs.iter().filter_map(side) {
            *times.entry(cause).or_default() += 1;
        }
        times.into_iter().max_by_key(|(_, times)| *times).map(|(cause, _)| cause)
    };
    let first = |figures: &RunFigures| {
        let cause = figures.causes.iter().find(|figure| !figure.minor)?;
        Some(cause.cause.clone())
    };
    most_often(&|pair| first(pair.0)).or_else(|| most_often(&|pair| first(pair.1)))
}

/// One cause on both sides.
pub fn of(id: &str, pairs: &[Figures<'_>]) -> CauseProof {
    let named = |figures: &RunFigures| figures.cause(id).filter(|figure| !figure.minor).cloned();
    let before: Vec<Option<CauseFigure>> = pairs.iter().map(|pair| named(pair.0)).collect();
    let after: Vec<Option<CauseFigure>> = pairs.iter().map(|pair| named(pair.1)).collect();
    let with = |side: &[Option<CauseFigure>]| side.iter().flatten().count();
    let mean = |side: &[Option<CauseFigure>]| {
        let sum = side.iter().flatten().fold(0.0, |sum, figure| sum + figure.wall_share);
        sum / side.len().max(1) as f64
    };
    let (first, second) = (
        Count { with: with(&before), of: pairs.len() },
        Count { with: with(&after), of: pairs.len() },
    );
    // Of a program that became faster for another reason each part is shorter, too: what a cause
    // takes has to be less, and less of the whole.
    let compared = |value: fn(&CauseFigure) -> f64| {
        let both = before.iter().zip(&after);
        let both = both.filter_map(|(a, b)| Some((value(a.as_ref()?), value(b.as_ref()?))));
        paired::compare(&both.collect::<Vec<_>>())
    };
    let lost = compared(|figure| figure.lost_ns as f64);
    let is_less = |paired: Option<Paired>, least: f64| {
        paired.is_some_and(|paired| paired.p <= ALPHA && paired.ratio.high < 1.0 - least)
    };
    let is_smaller =
        is_less(lost, LEAST_LESS) && is_less(compared(|figure| figure.wall_share), 0.0);
    let p = fisher(first, second);
    CauseProof {
        cause: id.to_owned(),
        before: (first.with, first.of),
        after: (second.with, second.of),
        p,
        at_most: upper_bound(second).unwrap_or(1.0),
        share_before: mean(&before),
        share_after: mean(&after),
        ratio: lost.map(|lost| lost.ratio),
        verdict: verdict(first, second, p, is_smaller),
    }
}

fn verdict(before: Count, after: Count, p: f64, is_smaller: bool) -> CauseVerdict {
    let is_shown = p <= ALPHA;
    if is_shown && after.with > before.with {
        CauseVerdict::Came
    } else if is_shown && after.with == 0 {
        CauseVerdict::Gone
    } else if is_shown {
        CauseVerdict::Rarer
    } else if is_smaller {
        CauseVerdict::Smaller
    } else if before.with > 0 && 2 * after.with >= before.with {
        CauseVerdict::Stays
    } else {
        CauseVerdict::Insufficient
    }
}
