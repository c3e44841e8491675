//! The shift function of two sets of runs that are not pairs: what turning signs is for pairs,
//! exchanging the labels of runs is here.

use super::{CONFIDENCE, LEAST_SPREAD, ROUNDING, SEED, Shift};
use crate::{Interval, quantile};

/// Fewer runs on a side show nothing: exact tests of 4 and 4 come to 0.029 at best, those of 3 and 3
/// to 0.10.
pub const LEAST_RUNS: usize = 5;
const EXCHANGES: usize = 1999;

/// The shift from the quantiles of each run of `a` to those of `b`; as many as the shortest has.
/// `None` with fewer than [`LEAST_RUNS`] runs on a side or without any quantile.
pub fn unpaired(a: &[&[u64]], b: &[&[u64]]) -> Option<Shift> {
    let width = a.iter().chain(b).map(|run| run.len()).min()?;
    if a.len().min(b.len()) < LEAST_RUNS || width == 0 {
        return None;
    }
    let log = |run: &&[u64]| -> Vec<f64> {
        run[..width].iter().map(|value| (*value.max(&1) as f64).ln()).collect()
    };
    let mut runs: Vec<Vec<f64>> = a.iter().chain(b).map(log).collect();
    let seen = moved(&runs, a.len());
    let largest = |moved: &[(f64, f64)]| {
        moved.iter().map(|(mean, error)| (mean / error).abs()).fold(0.0, f64::max)
    };
    let threshold = largest(&seen) * (1.0 - ROUNDING);
    let mut lot = fastrand::Rng::with_seed(SEED);
    let mut exchanged = runs.clone();
    let as_large = (0..EXCHANGES).filter(|_| {
        lot.shuffle(&mut exchanged);
        largest(&moved(&exchanged, a.len())) >= threshold
    });
    let p = (as_large.count() + 1) as f64 / (EXCHANGES + 1) as f64;
    // The band is about what is left without the shift.
    for run in &mut runs[a.len()..] {
        run.iter_mut().zip(&seen).for_each(|(value, (mean, _))| *value -= mean);
    }
    let noise: Vec<f64> = (0..EXCHANGES)
        .map(|_| {
            lot.shuffle(&mut runs);
            largest(&moved(&runs, a.len()))
        })
        .collect();
    let band = quantile::of(&noise, CONFIDENCE)?;
    let interval = |(mean, error): &(f64, f64)| Interval {
        estimate: mean.exp(),
        low: (mean - band * error).exp(),
        high: (mean + band * error).exp(),
        confidence: CONFIDENCE,
    };
    Some(Shift { ratios: seen.iter().map(interval).collect(), p })
}

/// For each quantile how much larger its mean is in the runs behind the first `split`, and the
/// standard error of that.
fn moved(runs: &[Vec<f64>], split: usize) -> Vec<(f64, f64)> {
    let (a, b) = runs.split_at(split);
    let of = |side: &[Vec<f64>], q: usize| {
        let n = side.len() as f64;
        let mean = side.iter().map(|run| run[q]).sum::<f64>() / n;
        let squares: f64 = side.iter().map(|run| (run[q] - mean).powi(2)).sum();
        (mean, squares / (n - 1.0), n)
    };
    let each = (0..runs[0].len()).map(|q| {
        let ((mean_a, var_a, n_a), (mean_b, var_b, n_b)) = (of(a, q), of(b, q));
        let spread = LEAST_SPREAD * LEAST_SPREAD * (1.0 / n_a + 1.0 / n_b);
        (mean_b - mean_a, (var_a / n_a + var_b / n_b).max(spread).sqrt())
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of 12 quantiles with noise of some percent that a run has as a whole, those from
    /// `moved_from` on this many times as slow.
    fn runs(lot: &mut fastrand::Rng, n: usize, moved_from: usize, times: f64) -> Vec<Vec<u64>> {
        let run = |lot: &mut fastrand::Rng| {
            let whole = 1.0 + 0.04 * (lot.f64() - 0.5);
            let value = |q: usize| {
                let times = if q >= moved_from { times } else { 1.0 };
                1e5 * whole * times * (1.0 + q as f64) * (1.0 + 0.01 * (lot.f64() - 0.5))
            };
            (0..12).map(value).map(|value| value as u64).collect()
        };
        (0..n).map(|_| run(lot)).collect()
    }

    fn shift(a: &[Vec<u64>], b: &[Vec<u64>]) -> Option<Shift> {
        let a: Vec<&[u64]> = a.iter().map(Vec::as_slice).collect();
        unpaired(&a, &b.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn a_tail_that_moved_is_found_and_the_rest_is_not() {
        let mut lot = fastrand::Rng::with_seed(1);
        let (a, b) = (runs(&mut lot, 8, 12, 1.0), runs(&mut lot, 7, 10, 1.5));
        let shift = shift(&a, &b).unwrap();
        assert!(shift.p < 0.01, "{}", shift.p);
        assert!(shift.ratios[..10].iter().all(|ratio| ratio.low < 1.0 && ratio.high > 1.0));
        assert!(shift.ratios[10..].iter().all(|ratio| ratio.low > 1.3 && ratio.high < 1.7));
    }

    #[test]
    fn equal_sets_are_seldom_called_different() {
        let mut lot = fastrand::Rng::with_seed(2);
        let tried = 120;
        let called = (0..tried).filter(|_| {
            let (a, b) = (runs(&mut lot, 6, 12, 1.0), runs(&mut lot, 6, 12, 1.0));
            shift(&a, &b).unwrap().p <= 0.05
        });
        // 5 % are 6; beyond 14 is one in a thousand.
        let called = called.count();
        assert!(called <= 14, "{called} of {tried}");
    }

    #[test]
    fn too_few_runs_say_nothing() {
        let mut lot = fastrand::Rng::with_seed(3);
        let few = runs(&mut lot, 4, 12, 1.0);
        assert_eq!(shift(&few, &runs(&mut lot, 9, 12, 1.0)), None);
    }
}
