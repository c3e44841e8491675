//! Intervals by resampling blocks, and tests by exchanging labels.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::Interval;
use crate::quantile;

const RESAMPLES: usize = 2000;
const SEED: u64 = 0x7768_796c_6167;

/// Bootstrap interval of a statistic of independent blocks: percentile method. `None` for fewer
/// than 3 blocks; below 20 it is somewhat too narrow.
pub fn interval(
    blocks: &[f64],
    confidence: f64,
    statistic: impl Fn(&[f64]) -> Option<f64>,
) -> Option<Interval> {
    if blocks.len() < 3 {
        return None;
    }
    let estimate = statistic(blocks)?;
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut drawn = vec![0.0; blocks.len()];
    let values: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            drawn.iter_mut().for_each(|slot| *slot = blocks[rng.usize(..blocks.len())]);
            statistic(&drawn)
        })
        .collect();
    bounds(estimate, &values, confidence)
}

/// The same for a statistic that is handed how often each of the `n` blocks was drawn; `None` from it is
/// more than any value. Its tails are as far out as a few blocks ask for (expanded percentile interval,
/// Hesterberg 2015, "What Teachers Should Know About the Bootstrap").
pub fn interval_of_blocks(
    n: usize,
    confidence: f64,
    statistic: impl Fn(&[u32]) -> Option<f64>,
) -> Option<Interval> {
    let estimate = statistic(&vec![1; n])?;
    let tail = expanded_tail(n, (1.0 - confidence) / 2.0)?;
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut drawn = vec![0; n];
    let draw = || {
        drawn.fill(0);
        (0..n).for_each(|_| drawn[rng.usize(..n)] += 1);
        statistic(&drawn).unwrap_or(f64::INFINITY)
    };
    let mut values: Vec<f64> = std::iter::repeat_with(draw).take(RESAMPLES).collect();
    values.sort_by(f64::total_cmp);
    let beyond = ((tail * RESAMPLES as f64) as usize).min(RESAMPLES / 2);
    let (low, high) = (values[beyond], values[RESAMPLES - 1 - beyond]);
    Some(Interval { estimate, low: low.min(estimate), high: high.max(estimate), confidence })
}

/// The part of the draws beyond one end: that of a normal value which is as far out as Student's t of the
/// blocks, and the draws have a spread that is too small by sqrt((n - 1) / n).
fn expanded_tail(n: usize, tail: f64) -> Option<f64> {
    if n < 3 {
        return None;
    }
    let n = n as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(tail);
    Some(Normal::standard().cdf((n / (n - 1.0)).sqrt() * t))
}

/// Bootstrap interval of the ratio of medians, second over first, of two samples of runs or
/// blocks. `None` for fewer than 3 on a side, or a median of zero.
pub fn ratio_of_medians(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    if a.len() < 3 || b.len() < 3 {
        return None;
    }
    let ratio = |a: &[f64], b: &[f64]| {
        let (a, b) = (quantile::median(a)?, quantile::median(b)?);
        (a > 0.0).then(|| b / a)
    };
    let estimate = ratio(a, b)?;
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut draw = |from: &[f64]| -> Vec<f64> {
        (0..from.len()).map(|_| from[rng.usize(..from.len())]).collect()
    };
    let values: Vec<f64> = (0..RESAMPLES).filter_map(|_| ratio(&draw(a), &draw(b))).collect();
    bounds(estimate, &values, confidence)
}

fn bounds(estimate: f64, values: &[f64], confidence: f64) -> Option<Interval> {
    let tail = (1.0 - confidence) / 2.0;
    let (low, high) = (quantile::of(values, tail)?, quantile::of(values, 1.0 - tail)?);
    Some(Interval { estimate, low: low.min(estimate), high: high.max(estimate), confidence })
}

/// Permutation test: how often is the statistic of two samples as large when their labels are
/// exchanged? p = (k + 1) / (B + 1), never zero.
pub fn permutation_p(a: &[f64], b: &[f64], statistic: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
    let observed = statistic(a, b);
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut as_large = 0;
    for _ in 0..RESAMPLES {
        rng.shuffle(&mut all);
        let (x, y) = all.split_at(a.len());
        as_large += usize::from(statistic(x, y) >= observed);
    }
    (as_large + 1) as f64 / (RESAMPLES + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(rng: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    #[test]
    fn intervals_cover_as_often_as_they_say() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut covered = 0;
        for _ in 0..200 {
            let blocks: Vec<f64> = (0..30).map(|_| 100.0 + normal(&mut rng)).collect();
            let interval = interval(&blocks, 0.95, quantile::median).unwrap();
            covered += usize::from(interval.contains(100.0));
        }
        assert!((178..=200).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn intervals_of_few_blocks_cover_as_often_as_they_say() {
        let mut rng = fastrand::Rng::with_seed(11);
        for n in [5, 10, 40] {
            let mut covered = 0;
            for _ in 0..200 {
                let blocks: Vec<f64> = (0..n).map(|_| 100.0 + normal(&mut rng)).collect();
                let mean = |drawn: &[u32]| {
                    let sum = blocks.iter().zip(drawn).map(|(x, n)| x * f64::from(*n)).sum::<f64>();
                    Some(sum / n as f64)
                };
                let interval = interval_of_blocks(n, 0.95, mean).unwrap();
                covered += usize::from(interval.contains(100.0));
            }
            assert!((180..=199).contains(&covered), "{covered} of 200 with {n} blocks");
        }
        assert_eq!(interval_of_blocks(2, 0.95, |_| Some(1.0)), None);
        let open = interval_of_blocks(9, 0.95, |drawn| (drawn[0] < 2).then_some(1.0)).unwrap();
        assert_eq!((open.low, open.high), (1.0, f64::INFINITY));
    }

    #[test]
    fn a_ratio_is_found_with_its_bounds() {
        let mut rng = fastrand::Rng::with_seed(3);
        let a: Vec<f64> = (0..20).map(|_| 100.0 + normal(&mut rng)).collect();
        let b: Vec<f64> = (0..20).map(|_| 120.0 + normal(&mut rng)).collect();
        let ratio = ratio_of_medians(&a, &b, 0.999).unwrap();
        assert!(ratio.contains(1.2) && ratio.relative_half_width() < 0.02, "{ratio:?}");
        assert!(ratio_of_medians(&a[..2], &b, 0.95).is_none());
    }

    #[test]
    fn a_permutation_p_is_never_zero_and_is_large_for_equals() {
        let difference = |a: &[f64], b: &[f64]| {
            let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
            (mean(a) - mean(b)).abs()
        };
        let p = permutation_p(&[1., 2., 3., 4., 5.], &[101., 102., 103., 104., 105.], difference);
        assert!(p > 0.0 && p < 0.02, "{p}");
        assert!(permutation_p(&[1., 2., 3.], &[1., 2., 3.], difference) > 0.5);
    }
}
