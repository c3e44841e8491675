//! Pairs of measurements, one of each side, in an order that was drawn by lot inside each pair.
//!
//! If the sides do not differ, each of the two labels of a pair could as well be the other way
//! round, whatever the values are: heavy tails, drift, steps and correlation between neighbours
//! change nothing about that (Fisher's randomization test). So the Wilcoxon signed-rank test with
//! its exact distribution is wrong in at most 5 % of equal sides, and no simulation has to show it,
//! though the tests below do. It is only as good as the lot: pairs that always ran in the same
//! order are not protected from drift.
//!
//! Values are positive (times, rates), and are compared by the logarithm of their ratio: 2.0 is as
//! far from 1.0 as 0.5.

use crate::{Interval, quantile};

/// Fewer pairs show nothing at 5 %: of 5 pairs p is at least 0.0625, of 6 it is 0.031.
pub const LEAST_PAIRS: usize = 6;
/// Two-sided p up to this counts.
pub const ALPHA: f64 = 0.05;

/// The second side against the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Second over first: the Hodges-Lehmann estimate (median of the means of all pairs of log
    /// ratios), with the 95 % interval that belongs to the signed-rank test.
    pub ratio: Interval,
    /// Two-sided p of the exact Wilcoxon signed-rank test.
    pub p: f64,
    /// Pairs.
    pub n: usize,
    /// Standard deviation of the log ratios: 0.03 is about 3 %.
    pub noise: f64,
}

/// Compares (first, second) of each pair; `None` with fewer than [`LEAST_PAIRS`] pairs, or a value
/// that is not positive.
pub fn compare(pairs: &[(f64, f64)]) -> Option<Paired> {
    let is_positive = |(a, b): &(f64, f64)| *a > 0.0 && *b > 0.0 && a.is_finite() && b.is_finite();
    if pairs.len() < LEAST_PAIRS || !pairs.iter().all(is_positive) {
        return None;
    }
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let walsh = walsh_averages(&logs);
    let estimate = quantile::median(&walsh)?;
    let beyond = averages_beyond(logs.len());
    let bound = |log: Option<&f64>| log.copied().unwrap_or(estimate).exp();
    let ratio = Interval {
        estimate: estimate.exp(),
        low: bound(walsh.get(beyond)),
        high: bound(walsh.get(walsh.len() - 1 - beyond)),
        confidence: 1.0 - ALPHA,
    };
    Some(Paired { ratio, p: signed_rank_p(&logs), n: logs.len(), noise: deviation(&logs) })
}

/// p of the same test on differences, where values may be zero; `None` with fewer than
/// [`LEAST_PAIRS`].
pub fn difference_p(differences: &[f64]) -> Option<f64> {
    (differences.len() >= LEAST_PAIRS).then(|| signed_rank_p(differences))
}

impl Paired {
    /// How many pairs it takes until the interval is as narrow as `half_width` (as a part: 0.01) on
    /// both sides, at the noise that was seen.
    pub fn pairs_for(&self, half_width: f64) -> usize {
        /// The quantile of the normal distribution that bounds 95 % on both sides.
        const TWO_SIDED_95: f64 = 1.96;
        let needed = (TWO_SIDED_95 * self.noise / half_width.max(1e-9)).powi(2);
        // The signed-rank interval needs as many again as t does to be as narrow.
        (needed.ceil() as usize + 2).max(LEAST_PAIRS)
    }
}

/// The means of all pairs of values, each with itself, too, in order.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = (0..values.len())
        .flat_map(|i| (i..values.len()).map(move |j| (values[i] + values[j]) / 2.0))
        .collect();
    averages.sort_by(f64::total_cmp);
    averages
}

/// Two-sided p of the signed-rank test: how often are the ranks of one sign as far from the half of
/// all, if each sign is drawn by lot? Equal distances share the mean of their ranks; a pair without
/// a difference is left out.
fn signed_rank_p(differences: &[f64]) -> f64 {
    let mut all: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    all.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Doubled, so that a mean of ranks is a whole number.
    let mut ranks: Vec<usize> = Vec::with_capacity(all.len());
    for group in all.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + group.len() - 1, group.len()));
    }
    let positive = all.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank);
    let seen: usize = positive.sum();
    let total: usize = ranks.iter().sum();
    let ways = ways_of_sums(&ranks, total);
    let smaller = seen.min(total - seen);
    let tail: f64 = ways.iter().take(smaller + 1).sum();
    (2.0 * tail).min(1.0)
}

/// For each sum, the probability that the ranks whose sign is drawn positive have it.
fn ways_of_sums(ranks: &[usize], total: usize) -> Vec<f64> {
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for rank in ranks {
        for sum in (0..=total).rev() {
            let with = if sum >= *rank { ways[sum - rank] } else { 0.0 };
            ways[sum] = (ways[sum] + with) / 2.0;
        }
    }
    ways
}

/// So many of the smallest Walsh averages lie below the interval of `n` values, and as many above:
/// the most that the test leaves a probability of [`ALPHA`].
fn averages_beyond(n: usize) -> usize {
    let total = n * (n + 1) / 2;
    let ranks: Vec<usize> = (1..=n).collect();
    let ways = ways_of_sums(&ranks, total);
    let mut tail = 0.0;
    let below = ways.iter().take_while(|way| {
        tail += *way;
        2.0 * tail <= ALPHA
    });
    below.count().saturating_sub(1)
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (n - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests;
