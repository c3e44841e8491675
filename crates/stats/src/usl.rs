//! The Universal Scalability Law (Gunther 1993): throughput of N workers is
//! `X(N) = gain N / (1 + contention (N - 1) + crosstalk N (N - 1))`.
//!
//! Contention is the part of the work that is serialised, crosstalk the cost of agreeing that each
//! pair of workers adds. N / X(N) is linear in (N - 1) and N (N - 1), so the fit is a least squares
//! one of that, weighted to relative errors.

use serde::{Deserialize, Serialize};

use crate::{Interval, quantile};

/// A fitted law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput of one worker, in the unit of the points.
    pub gain: f64,
    /// Serialised part, 0 to 1.
    pub contention: f64,
    /// Cost of each pair, at least 0.
    pub crosstalk: f64,
}

impl Usl {
    /// Throughput of `n` workers.
    pub fn throughput(&self, n: f64) -> f64 {
        self.gain * n / (1.0 + self.contention * (n - 1.0) + self.crosstalk * n * (n - 1.0))
    }

    /// Workers beyond which throughput falls; `None` without crosstalk.
    pub fn peak(&self) -> Option<f64> {
        let peak = ((1.0 - self.contention) / self.crosstalk).sqrt();
        (self.crosstalk > 0.0 && peak.is_finite()).then_some(peak.max(1.0))
    }
}

/// Fits points (workers, throughput); `None` for fewer than 3 different numbers of workers or a
/// throughput that is not positive.
pub fn fit(points: &[(f64, f64)]) -> Option<Usl> {
    let mut workers: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    workers.sort_by(f64::total_cmp);
    workers.dedup();
    if workers.len() < 3 || points.iter().any(|(n, x)| *n < 1.0 || *x <= 0.0) {
        return None;
    }
    // A negative coefficient has no meaning: without it, what is left is fitted again.
    let all = solve(points, [true, true])?;
    let law = match (all[1] >= 0.0, all[2] >= 0.0) {
        (true, true) => all,
        (false, _) => solve(points, [false, true])
            .filter(|c| c[2] >= 0.0)
            .or_else(|| solve(points, [false, false]))?,
        (true, false) => solve(points, [true, false])
            .filter(|c| c[1] >= 0.0)
            .or_else(|| solve(points, [false, false]))?,
    };
    (law[0] > 0.0).then(|| Usl {
        gain: 1.0 / law[0],
        contention: (law[1] / law[0]).min(1.0),
        crosstalk: law[2] / law[0],
    })
}

/// 95 % intervals of (contention, crosstalk) by resampling each step's blocks: `steps` has for each
/// number of workers the throughputs of its blocks.
pub fn intervals(steps: &[(f64, Vec<f64>)]) -> Option<(Interval, Interval)> {
    const RESAMPLES: usize = 500;
    let medians: Vec<_> =
        steps.iter().filter_map(|(n, blocks)| Some((*n, quantile::median(blocks)?))).collect();
    let estimate = fit(&medians)?;
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut contention, mut crosstalk) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let mut points = Vec::with_capacity(steps.len());
        for (n, blocks) in steps.iter().filter(|(_, blocks)| !blocks.is_empty()) {
            let drawn: Vec<f64> =
                (0..blocks.len()).map(|_| blocks[rng.usize(..blocks.len())]).collect();
            points.push((*n, quantile::median(&drawn)?));
        }
        if let Some(law) = fit(&points) {
            contention.push(law.contention);
            crosstalk.push(law.crosstalk);
        }
    }
    let interval = |estimate: f64, values: &[f64]| {
        let low = quantile::of(values, 0.025)?.min(estimate);
        let high = quantile::of(values, 0.975)?.max(estimate);
        Some(Interval { estimate, low, high, confidence: 0.95 })
    };
    Some((interval(estimate.contention, &contention)?, interval(estimate.crosstalk, &crosstalk)?))
}

/// Least squares of N / X = c0 + c1 (N - 1) + c2 N (N - 1), each point weighted by (X / N)^2; terms
/// that are not `used` are zero.
fn solve(points: &[(f64, f64)], used: [bool; 2]) -> Option<[f64; 3]> {
    let mut matrix = [[0.0; 4]; 3];
    for (n, x) in points {
        let weight = (x / n) * (x / n);
        let terms =
            [1.0, if used[0] { n - 1.0 } else { 0.0 }, if used[1] { n * (n - 1.0) } else { 0.0 }];
        for row in 0..3 {
            for column in 0..3 {
                matrix[row][column] += weight * terms[row] * terms[column];
            }
            matrix[row][3] += weight * terms[row] * n / x;
        }
    }
    for (row, used) in [(1, used[0]), (2, used[1])] {
        if !used {
            matrix[row] = [0.0; 4];
            matrix[row][row] = 1.0;
        }
    }
    eliminate(matrix)
}

/// Gauss elimination with pivoting.
fn eliminate(mut m: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for step in 0..3 {
        let pivot = (step..3).max_by(|a, b| m[*a][step].abs().total_cmp(&m[*b][step].abs()))?;
        m.swap(step, pivot);
        if m[step][step].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for row in 0..3 {
            if row != step {
                let factor = m[row][step] / m[step][step];
                let pivot = m[step];
                m[row].iter_mut().zip(pivot).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
    }
    Some([m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(law: Usl) -> Vec<(f64, f64)> {
        [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, law.throughput(n))).to_vec()
    }

    #[test]
    fn a_law_is_recovered() {
        let law = Usl { gain: 1e6, contention: 0.08, crosstalk: 0.002 };
        let found = fit(&points(law)).unwrap();
        assert!((found.contention - 0.08).abs() < 1e-6 && (found.crosstalk - 0.002).abs() < 1e-6);
        assert!((found.peak().unwrap() - (0.92f64 / 0.002).sqrt()).abs() < 0.01);
    }

    #[test]
    fn coefficients_are_never_negative() {
        let better_than_linear = [(1.0, 1.0), (2.0, 2.1), (4.0, 4.5), (8.0, 9.0)];
        let found = fit(&better_than_linear).unwrap();
        assert_eq!((found.contention, found.crosstalk), (0.0, 0.0));
        assert_eq!(found.peak(), None);
    }

    #[test]
    fn intervals_hold_the_truth_under_noise() {
        let law = Usl { gain: 1e6, contention: 0.3, crosstalk: 0.01 };
        let mut rng = fastrand::Rng::with_seed(2);
        let steps: Vec<(f64, Vec<f64>)> = [1.0, 2.0, 4.0, 8.0]
            .map(|n| (n, (0..20).map(|_| law.throughput(n) * (0.97 + 0.06 * rng.f64())).collect()))
            .to_vec();
        let (contention, crosstalk) = intervals(&steps).unwrap();
        assert!(contention.contains(0.3) && contention.high < 0.4, "{contention:?}");
        assert!(crosstalk.contains(0.01), "{crosstalk:?}");
    }

    #[test]
    fn too_few_points_are_no_law() {
        assert!(fit(&[(1.0, 1.0), (2.0, 1.0)]).is_none());
        assert!(fit(&[(1.0, 1.0), (2.0, 0.0), (4.0, 1.0)]).is_none());
    }
}
