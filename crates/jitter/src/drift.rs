//! CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW.

use clock::{monotonic_ns, monotonic_raw_ns};
use model::Estimate;

/// How the two clocks drift apart: pairs of readings over a run.
#[derive(Debug, Default)]
pub struct Drift {
    pairs: Vec<(u64, u64)>,
}

impl Drift {
    /// Both clocks at one moment: the closest of a few tries.
    pub fn read(&mut self) {
        let attempt = || {
            let (before, raw, after) = (monotonic_ns(), monotonic_raw_ns(), monotonic_ns());
            (after - before, before + (after - before) / 2, raw)
        };
        let best = (0..3).map(|_| attempt()).min_by_key(|(distance, ..)| *distance);
        self.pairs.extend(best.map(|(_, monotonic, raw)| (monotonic, raw)));
    }

    /// A pair read elsewhere.
    pub fn pair(&mut self, monotonic: u64, raw: u64) {
        self.pairs.push((monotonic, raw));
    }

    /// By how many ppm CLOCK_MONOTONIC runs faster than CLOCK_MONOTONIC_RAW; `None` for less than a
    /// second.
    pub fn estimate(&self) -> Option<Estimate> {
        let mean = |values: &[f64]| Some(values.iter().sum::<f64>() / values.len() as f64);
        let interval = stats::resample::interval(&self.parts_per_million(), 0.95, mean)?;
        Some(Estimate { value: interval.estimate, low: interval.low, high: interval.high })
    }

    /// One figure per twentieth of the time; empty for less than a second.
    fn parts_per_million(&self) -> Vec<f64> {
        const PARTS: u64 = 20;
        let (Some(first), Some(last)) = (self.pairs.first(), self.pairs.last()) else {
            return Vec::new();
        };
        let length = last.0 - first.0;
        if length < 1_000_000_000 {
            return Vec::new();
        }
        let part = |pair: &(u64, u64)| ((pair.0 - first.0) * PARTS / (length + 1)).min(PARTS - 1);
        // A pair that was interrupted between its readings is off; the median of a part is not.
        let points: Vec<(f64, f64)> = self
            .pairs
            .chunk_by(|a, b| part(a) == part(b))
            .filter_map(|pairs| {
                let ahead = |pair: &(u64, u64)| {
                    (pair.0 - first.0) as f64 - (pair.1 as i64 - first.1 as i64) as f64
                };
                let of = |value: &dyn Fn(&(u64, u64)) -> f64| {
                    stats::quantile::median(&pairs.iter().map(value).collect::<Vec<_>>())
                };
                Some((of(&|pair| (pair.0 - first.0) as f64)?, of(&ahead)?))
            })
            .collect();
        points.windows(2).map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0) * 1e6).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_found_in_spite_of_interrupted_readings() {
        let mut drift = Drift::default();
        for n in 0..2000u64 {
            let at = 5_000_000 * n;
            let interrupted = if n % 97 == 0 { 40_000 } else { 0 };
            drift.pair(7_000 + at, 90_000 + at - at / 10_000 + interrupted);
        }
        let ppm = drift.parts_per_million();
        let mean = ppm.iter().sum::<f64>() / ppm.len() as f64;
        assert!((mean - 100.0).abs() < 0.1, "{ppm:?}");
        let estimate = drift.estimate().unwrap();
        assert!(estimate.low <= 100.1 && estimate.high >= 99.9, "{estimate:?}");
        assert!(Drift::default().estimate().is_none());
    }
}
