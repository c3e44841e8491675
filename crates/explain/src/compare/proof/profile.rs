//! Where the time went on both sides: accounts and latencies that changed.

use std::collections::BTreeSet;

use model::{Account, AccountChange, LatencyChange, LatencyFigure, RunFigures};
use stats::paired::{self, ALPHA};
use stats::{multiple, shift};

/// (before, after) of a pair.
type Figures<'a> = (&'a RunFigures, &'a RunFigures);

/// A change of an account below this part of the wall time is not listed.
const LEAST_PART: f64 = 0.005;

/// Accounts whose mean changed and of which chance does not explain it, the largest change first.
pub fn accounts(pairs: &[Figures<'_>]) -> Vec<AccountChange> {
    let all: BTreeSet<Account> = pairs
        .iter()
        .flat_map(|(before, after)| before.accounts.keys().chain(after.accounts.keys()))
        .copied()
        .collect();
    let of = |figures: &RunFigures, account| *figures.accounts.get(&account).unwrap_or(&0) as f64;
    let runs = pairs.len().max(1) as f64;
    let mean = |value: &dyn Fn(&Figures<'_>) -> f64| {
        pairs.iter().fold(0.0, |sum, pair| sum + value(pair)) / runs
    };
    let tested = all.into_iter().filter_map(|account| {
        let moved: Vec<f64> =
            pairs.iter().map(|pair| of(pair.1, account) - of(pair.0, account)).collect();
        let change = AccountChange {
            account,
            before_ns: mean(&|pair| of(pair.0, account)),
            after_ns: mean(&|pair| of(pair.1, account)),
            p_adjusted: None,
        };
        Some((paired::difference_p(&moved)?, change))
    });
    let (ps, mut changes): (Vec<f64>, Vec<AccountChange>) = tested.unzip();
    for (change, p) in changes.iter_mut().zip(multiple::benjamini_hochberg(&ps)) {
        change.p_adjusted = Some(p);
    }
    let wall = mean(&|pair| pair.0.wall_ns.max(pair.1.wall_ns) as f64);
    let size = |change: &AccountChange| (change.after_ns - change.before_ns).abs();
    changes.retain(|change| {
        change.p_adjusted.is_some_and(|p| p <= ALPHA) && size(change) >= LEAST_PART * wall
    });
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
    changes
}

/// Latencies that both sides of all pairs have and that changed, the surest first.
pub fn latencies(pairs: &[Figures<'_>]) -> Vec<LatencyChange> {
    let Some((first, _)) = pairs.first() else { return Vec::new() };
    let compared = first.latencies.keys().filter_map(|name| {
        let both: Option<Vec<(&LatencyFigure, &LatencyFigure)>> = pairs
            .iter()
            .map(|(before, after)| Some((before.latencies.get(name)?, after.latencies.get(name)?)))
            .collect();
        let both = both?;
        let quantiles: Vec<(&[u64], &[u64])> = both
            .iter()
            .map(|(before, after)| (&before.quantiles_ns[..], &after.quantiles_ns[..]))
            .collect();
        let shift = shift::shift(&quantiles)?;
        let total =
            |side: fn(&(&LatencyFigure, &LatencyFigure)) -> u64| both.iter().map(side).sum();
        let count = [total(|pair| pair.0.count), total(|pair| pair.1.count)];
        let shift_at = LatencyFigure::PROBABILITIES.into_iter().zip(shift.ratios).collect();
        Some(LatencyChange { name: name.clone(), count, shift: shift_at, p: shift.p })
    });
    let mut changes: Vec<LatencyChange> = compared.collect();
    let ps: Vec<f64> = changes.iter().map(|change| change.p).collect();
    for (change, p) in changes.iter_mut().zip(multiple::benjamini_hochberg(&ps)) {
        change.p = p;
    }
    let is_beyond_one = |change: &LatencyChange| {
        change.shift.iter().any(|(_, ratio)| ratio.low > 1.0 || ratio.high < 1.0)
    };
    changes.retain(|change| change.p <= ALPHA && is_beyond_one(change));
    changes.sort_by(|a, b| a.p.total_cmp(&b.p));
    changes
}
