//! What stood behind stalls: the cause, of the catalogue, of the intervals in which a thread was
//! away. So chains go from one cause to the next.

use std::collections::BTreeMap;

use model::Outlier;

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::cause::{Claim, Id};
use crate::part::question::Question;
use crate::part::run::PartialRun;

/// Intervals that are examined, the longest.
const EXAMINED: usize = 20;

/// A cause that stood behind some of the stalls.
pub(crate) struct StallCause {
    /// Its id.
    pub cause: Id,
    /// What it claims of the longest of them.
    pub claim: Claim,
    /// Of so many stalls.
    pub of: u64,
    /// That were examined.
    pub examined: u64,
}

/// The cause that explains most of these stalls, each by at least half of what it lost; `None` if
/// none does, or fewer than half of them have the same.
pub(crate) fn shared_cause(case: &Case, stalls: &[&Outlier]) -> Option<StallCause> {
    let mut stalls = stalls.to_vec();
    stalls.sort_by_key(|stall| std::cmp::Reverse(stall.duration_ns));
    stalls.truncate(EXAMINED);
    let mut found = BTreeMap::<Id, (u64, Claim)>::new();
    for stall in &stalls {
        if let Some((cause, claim)) = of_one(case, stall) {
            found.entry(cause).or_insert((0, claim)).0 += 1;
        }
    }
    let examined = stalls.len() as u64;
    let (cause, (of, claim)) = found.into_iter().max_by_key(|(_, (of, _))| *of)?;
    (of * 2 >= examined).then_some(StallCause { cause, claim, of, examined })
}

/// Symptoms are left out: they only say what the thread waited for, as its accounts do.
fn of_one(case: &Case, stall: &Outlier) -> Option<(Id, Claim)> {
    let whole = case.whole();
    let is_it = |o: &Outlier| {
        (o.tid, o.kind) == (stall.tid, stall.kind)
            && o.start_ns <= stall.start_ns
            && o.end_ns() >= stall.end_ns()
    };
    let number = whole.outliers.iter().position(is_it)? + 1;
    let partial = PartialRun::new(whole, &Question::Outlier(number)).ok()?;
    let inner = Case::of_part(&partial).asking(case.causes);
    let lost = stall.breakdown.sum_of(|account| class(account) == Class::Lost);
    let claims = case.causes.iter().filter(|cause| !cause.symptom);
    let claims = claims.filter_map(|cause| Some((cause.id, (cause.examine)(&inner).ok()?)));
    let (cause, claim) = claims.max_by_key(|(_, claim)| claim.lost.total())?;
    (claim.lost.total() * 2 >= lost && claim.lost.total() > 0).then_some((cause, claim))
}
