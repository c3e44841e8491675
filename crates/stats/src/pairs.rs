//! Ticks that come too soon and are followed by one that makes up for it: a timer whose error
//! depends on how long was slept, when another timer cuts one sleep in two.

use crate::quantile;

/// Pairs that were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// How many.
    pub n: usize,
    /// Mean change of lateness at the early tick, negative.
    pub early: f64,
    /// Mean change at the tick after it.
    pub late: f64,
    /// Mean of their sums.
    pub net: f64,
    /// Number of ticks from one pair to the next, the median; `None` for a single pair.
    pub every: Option<f64>,
}

/// Finds the ticks whose lateness falls by much more than it usually changes and is back at the
/// next; a tick that is late and then made up for is none: any delay does that. `None`: no pair.
pub fn early_late(lateness: &[f64], least: f64) -> Option<Pairs> {
    /// Median absolute changes that count as much.
    const MUCH: f64 = 6.0;
    /// What may be left of a pair, as a part of it.
    const LEFT: f64 = 0.25;
    let changes: Vec<f64> = lateness.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let absolute: Vec<f64> = changes.iter().map(|change| change.abs()).collect();
    let threshold = (MUCH * quantile::median(&absolute)?).max(least);
    let usual = quantile::median(lateness)?;
    let pairs: Vec<(usize, f64, f64)> = (1..changes.len())
        .map(|n| (n, changes[n - 1], changes[n]))
        .filter(|(n, early, late)| {
            // The tick before it was as late as usual: else this is the end of a delay.
            let from_usual = (lateness[n - 1] - usual).abs() < LEFT * early.abs();
            *early < -threshold && (early + late).abs() < LEFT * early.abs() && from_usual
        })
        .collect();
    let count = pairs.len() as f64;
    let mean = |of: fn(&(usize, f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let gaps: Vec<f64> = pairs.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64).collect();
    (!pairs.is_empty()).then(|| Pairs {
        n: pairs.len(),
        early: mean(|pair| pair.1),
        late: mean(|pair| pair.2),
        net: mean(|pair| pair.1 + pair.2),
        every: quantile::median(&gaps),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_storys_57_us_early_then_57_us_late() {
        let mut rng = fastrand::Rng::with_seed(4);
        let late: Vec<f64> = (0..1000)
            .map(|n| if n % 50 == 20 { 23_000.0 } else { 80_000.0 } + 2_000.0 * rng.f64())
            .collect();
        let pairs = early_late(&late, 5_000.0).unwrap();
        assert_eq!((pairs.n, pairs.every), (20, Some(50.0)));
        assert!((pairs.early + 57_000.0).abs() < 1_000.0, "{pairs:?}");
        assert!((pairs.late - 57_000.0).abs() < 1_000.0 && pairs.net.abs() < 500.0, "{pairs:?}");
    }

    #[test]
    fn delays_are_no_pairs() {
        let mut rng = fastrand::Rng::with_seed(4);
        let late: Vec<f64> = (0..1000)
            .map(|n| if n % 50 == 20 { 900_000.0 } else { 80_000.0 } + 2_000.0 * rng.f64())
            .collect();
        assert_eq!(early_late(&late, 5_000.0), None);
        assert_eq!(early_late(&[], 1.0), None);
    }
}
