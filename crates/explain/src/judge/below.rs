//! Causes that have their evidence and explain too little to be findings.

use std::cmp::Reverse;

use model::BelowBar;

use super::finding::share;
use super::rank::Judged;
use crate::case::Case;

/// Less than this part of the wall time is not listed either.
const LEAST: u64 = 1_000;
/// How many are listed, the nearest to the bar.
const LISTED: usize = 2;

/// What is nearest below the bar, the largest first.
pub(super) fn below_bar(case: &Case, judged: &[Judged]) -> Vec<BelowBar> {
    let below = judged.iter().filter_map(|one| {
        let lost_ns = one.below()?.lost.total();
        Some(BelowBar {
            cause: one.cause.id.to_string(),
            lost_ns,
            wall_share: share(lost_ns, case.wall_ns),
            because: one.shortfall.clone()?,
        })
    });
    let is_listed = |one: &BelowBar| one.lost_ns > 0 && one.lost_ns >= case.wall_ns / LEAST;
    let mut below: Vec<_> = below.filter(is_listed).collect();
    below.sort_by_key(|one| Reverse(one.lost_ns));
    below.truncate(LISTED);
    below
}

#[cfg(test)]
mod tests {
    use crate::testing::{RunBuilder, SECOND, USER, runner};
    use model::Account;

    #[test]
    fn what_is_too_small_to_be_named_is_listed_with_its_figures() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 39 * SECOND), (Account::RunnablePreempted, SECOND)])
            .runner(runner(10, 77, 900, SECOND))
            .build();
        let answer = crate::explain(&run);
        assert!(answer.findings.is_empty());
        let below = &answer.below_bar[0];
        assert_eq!((below.cause.as_str(), below.lost_ns), ("cpu-runqueue", SECOND));
        assert!((below.wall_share - 0.025).abs() < 1e-9);
        assert!(below.because.starts_with("1.00 s is 2.5 % of the wall time"));
    }
}
