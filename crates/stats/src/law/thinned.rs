//! Ticks made comparable: no interval drowns another, no delay by something else is in them, and
//! what is fitted to a part of them can be tried on the rest.

use super::{Point, SEED};
use crate::quantile;

/// Ticks that asked for nearly the same time, and how many of them are used: short intervals have
/// thousands, and must not drown the long ones.
const BIN_WIDTH: f64 = 0.05;
const PER_BIN: usize = 60;
/// Median absolute deviations, and ns above them, from which on a tick is left out.
const FAR: f64 = 6.0;
const FAR_NS: f64 = 2_000.0;
const FOLDS: usize = 10;

/// Ticks by the time asked for, shortest first, in time order, thinned evenly at random.
pub fn bins(points: &[Point]) -> Vec<Vec<Point>> {
    let mut sorted: Vec<(usize, &Point)> =
        points.iter().enumerate().filter(|(_, p)| p.asked > 0.0 && p.late.is_finite()).collect();
    sorted.sort_by(|a, b| a.1.asked.total_cmp(&b.1.asked));
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut bins = Vec::new();
    let mut rest = sorted.as_mut_slice();
    while let Some((_, first)) = rest.first() {
        let end = first.asked * (1.0 + BIN_WIDTH) + 1.0;
        let (bin, after) = rest.split_at_mut(rest.partition_point(|(_, p)| p.asked <= end));
        let mut bin = without_delays(bin);
        rng.shuffle(&mut bin);
        bin.truncate(PER_BIN);
        bin.sort_by_key(|(at, _)| *at);
        bins.push(bin.into_iter().map(|(_, p)| *p).collect());
        rest = after;
    }
    bins
}

/// Those that are not far from the median: whatever the law, ticks that asked for nearly the same
/// differ by no more than a step; a tick that is much later had to wait for something else.
fn without_delays<'a>(bin: &[(usize, &'a Point)]) -> Vec<(usize, &'a Point)> {
    let late: Vec<f64> = bin.iter().map(|(_, p)| p.late).collect();
    let median = quantile::median(&late).unwrap_or(0.0);
    let away: Vec<f64> = late.iter().map(|late| (late - median).abs()).collect();
    let far = FAR * quantile::median(&away).unwrap_or(0.0) + FAR_NS;
    bin.iter().filter(|(_, p)| (p.late - median).abs() <= far).copied().collect()
}

/// One cell per fold, each with a stretch of time of every bin.
pub fn cells(bins: &[Vec<Point>]) -> Vec<Vec<Point>> {
    let mut cells = vec![Vec::new(); FOLDS];
    for (offset, bin) in bins.iter().enumerate() {
        for (n, point) in bin.iter().enumerate() {
            // Bins with few ticks begin at different folds.
            cells[(n * FOLDS / bin.len().max(1) + offset) % FOLDS].push(*point);
        }
    }
    cells
}
