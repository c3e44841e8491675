//! The shift function: by how much each quantile of a distribution moved, over pairs of runs.
//!
//! Each run is one observation: the vector of the logarithms of its quantiles. As in [`crate::paired`]
//! the order inside a pair is drawn by lot, so without a difference the sign of each pair's vector
//! of differences could as well be the other one. Turning signs gives the distribution of the
//! largest shift anywhere, and with it bands that hold for all quantiles at once.

mod unpaired;

use crate::Interval;
use crate::paired::LEAST_PAIRS;
use crate::quantile;

pub use self::unpaired::{LEAST_RUNS, unpaired};

/// All ways to turn the signs of so many pairs are tried, of more so many by lot.
const ALL_OF_PAIRS: usize = 12;
const TURNS: usize = 1 << ALL_OF_PAIRS;
const SEED: u64 = 0x0073_6869_6674;
const CONFIDENCE: f64 = 0.95;
/// Two sums of the same numbers may differ by so much.
const ROUNDING: f64 = 1e-9;
/// Spreads below this are rounding: a histogram's bucket is 3 % wide.
const LEAST_SPREAD: f64 = 0.003;

/// How far quantiles moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// For each quantile the second side over the first (geometric mean over pairs), in a band that
    /// holds for all of them at once with 95 %.
    pub ratios: Vec<Interval>,
    /// How often is the largest shift as large when signs are turned?
    pub p: f64,
}

/// The shift of (first, second) quantiles of each pair; as many as the shortest has. `None` with
/// fewer than [`LEAST_PAIRS`] pairs or without any quantile.
pub fn shift(pairs: &[(&[u64], &[u64])]) -> Option<Shift> {
    let width = pairs.iter().map(|(a, b)| a.len().min(b.len())).min()?;
    if pairs.len() < LEAST_PAIRS || width == 0 {
        return None;
    }
    let log = |value: u64| (value.max(1) as f64).ln();
    let moved: Vec<Vec<f64>> =
        pairs.iter().map(|(a, b)| (0..width).map(|q| log(b[q]) - log(a[q])).collect()).collect();
    let unturned = vec![1.0; moved.len()];
    let means = signed_means(&moved, &unturned, width);
    // In units that turning does not change: only so the seen one is one of many alike.
    let sizes: Vec<f64> = (0..width).map(|q| error_around(&moved, q, 0.0)).collect();
    let turned: Vec<f64> =
        turns(moved.len()).map(|s| largest(&signed_means(&moved, &s, width), &sizes)).collect();
    let seen = largest(&means, &sizes) * (1.0 - ROUNDING);
    let as_large = turned.iter().filter(|value| **value >= seen).count();
    // The bands are about what is left without the shift.
    let errors: Vec<f64> = (0..width).map(|q| error_around(&moved, q, means[q])).collect();
    let left: Vec<Vec<f64>> = moved
        .iter()
        .map(|pair| pair.iter().zip(&means).map(|(d, mean)| d - mean).collect())
        .collect();
    let noise: Vec<f64> = turns(moved.len()).map(|s| largest_of_turned(&left, &s, width)).collect();
    let band = quantile::of(&noise, CONFIDENCE)?;
    let interval = |mean: &f64, error: &f64| Interval {
        estimate: mean.exp(),
        low: (mean - band * error).exp(),
        high: (mean + band * error).exp(),
        confidence: CONFIDENCE,
    };
    Some(Shift {
        ratios: means.iter().zip(&errors).map(|(mean, error)| interval(mean, error)).collect(),
        p: as_large as f64 / turned.len() as f64,
    })
}

fn signed_means(moved: &[Vec<f64>], signs: &[f64], width: usize) -> Vec<f64> {
    let mean = |q| moved.iter().zip(signs).map(|(pair, sign)| pair[q] * sign).sum::<f64>();
    (0..width).map(|q| mean(q) / moved.len() as f64).collect()
}

fn largest(means: &[f64], errors: &[f64]) -> f64 {
    means.iter().zip(errors).map(|(mean, error)| (mean / error).abs()).fold(0.0, f64::max)
}

/// The largest mean in units of its own error: both are as uncertain as those of the pairs.
fn largest_of_turned(left: &[Vec<f64>], signs: &[f64], width: usize) -> f64 {
    let turn = |(pair, sign): (&Vec<f64>, &f64)| pair.iter().map(|d| d * sign).collect();
    let turned: Vec<Vec<f64>> = left.iter().zip(signs).map(turn).collect();
    let means = signed_means(&turned, &vec![1.0; turned.len()], width);
    let errors: Vec<f64> = (0..width).map(|q| error_around(&turned, q, means[q])).collect();
    largest(&means, &errors)
}

/// The standard error of a mean, from the distances to `middle`.
fn error_around(moved: &[Vec<f64>], q: usize, middle: f64) -> f64 {
    let n = moved.len() as f64;
    let squares: f64 = moved.iter().map(|pair| (pair[q] - middle).powi(2)).sum();
    (squares / (n - 1.0)).sqrt().max(LEAST_SPREAD) / n.sqrt()
}

/// Signs for `n` pairs: every way, the unturned one among them, or [`TURNS`] ways by lot and the
/// unturned one.
fn turns(n: usize) -> impl Iterator<Item = Vec<f64>> {
    let mut rng = fastrand::Rng::with_seed(SEED);
    let ways = if n <= ALL_OF_PAIRS { 1 << n } else { TURNS };
    (0..ways).map(move |way: usize| {
        let is_turned = |pair: usize, rng: &mut fastrand::Rng| match n <= ALL_OF_PAIRS {
            true => way >> pair & 1 == 1,
            false => way > 0 && rng.bool(),
        };
        (0..n).map(|pair| if is_turned(pair, &mut rng) { -1.0 } else { 1.0 }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(rng: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    /// Quantiles of a run: noise of the run moves all of them, noise of each only itself.
    fn run(rng: &mut fastrand::Rng, tail: f64) -> Vec<u64> {
        let of_run = 0.03 * normal(rng);
        let quantile = |q: usize, rng: &mut fastrand::Rng| {
            let base = 10_000.0 * (1.0 + q as f64) * if q >= 8 { tail } else { 1.0 };
            (base * (of_run + 0.02 * normal(rng)).exp()) as u64
        };
        (0..10).map(|q| quantile(q, rng)).collect()
    }

    fn shift_of(pairs: &[(Vec<u64>, Vec<u64>)]) -> Option<Shift> {
        let borrowed: Vec<_> = pairs.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
        shift(&borrowed)
    }

    #[test]
    fn equal_distributions_differ_in_5_percent_though_ten_quantiles_are_looked_at() {
        let mut rng = fastrand::Rng::with_seed(21);
        let alarms = (0..300)
            .filter(|_| {
                let pairs: Vec<_> =
                    (0..8).map(|_| (run(&mut rng, 1.0), run(&mut rng, 1.0))).collect();
                shift_of(&pairs).unwrap().p <= 0.05
            })
            .count();
        assert!(alarms <= 27, "{alarms} of 300");
    }

    #[test]
    fn a_longer_tail_is_found_where_it_is() {
        let mut rng = fastrand::Rng::with_seed(22);
        let pairs: Vec<_> = (0..10).map(|_| (run(&mut rng, 1.0), run(&mut rng, 1.5))).collect();
        let shift = shift_of(&pairs).unwrap();
        assert!(shift.p <= 0.05, "{shift:?}");
        let moved: Vec<usize> = (0..10).filter(|q| !shift.ratios[*q].contains(1.0)).collect();
        assert_eq!(moved, [8, 9], "{shift:?}");
        assert!(shift.ratios[9].contains(1.5), "{shift:?}");
    }

    #[test]
    fn too_little_is_no_answer() {
        let pair = (vec![1, 2], vec![1]);
        assert!(shift_of(&vec![pair.clone(); 5]).is_none());
        assert_eq!(shift_of(&vec![pair; 6]).unwrap().ratios.len(), 1);
        assert!(shift_of(&vec![(vec![], vec![1]); 6]).is_none());
    }
}
