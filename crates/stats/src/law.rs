//! How the lateness of timers depends on the time asked for.
//!
//! Every law is `late = a + b f(tick) + g(tick)` with fixed f and g, fitted by least absolute
//! residuals: a few very late ticks must not bend the line. Laws are compared by what they leave
//! of ticks they were not fitted to; of two that leave about the same, the simpler one is taken.

mod shape;
mod thinned;

use self::shape::Shape;
use self::thinned::{bins, cells};
use crate::{Interval, quantile};

/// A tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Time asked for: from the moment of asking to the intended time, ns.
    pub asked: f64,
    /// Lateness, ns; negative: early.
    pub late: f64,
    /// The intended time modulo [`Steps::jiffy`], ns.
    pub phase: f64,
}

/// Steps that lateness may come in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// One jiffy, ns.
    pub jiffy: f64,
    /// Timer slack, ns, if it is known.
    pub slack: Option<f64>,
    /// What waking up costs here at least, ns; 0 if it is not known.
    pub waking: f64,
}

/// A law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The same whatever was asked for.
    Constant,
    /// Whole milliseconds are waited for.
    Milliseconds,
    /// Ticks of the kernel's low-resolution clock are waited for.
    Jiffies,
    /// The tolerance of poll, select and epoll: the slack, or a thousandth of the time asked for
    /// if that is more (100 ms at most).
    PollSlack,
    /// A part of the time asked for.
    Proportional,
    /// Grows with the time asked for, less and less.
    Saturating,
}

/// Simplest first.
pub const LAWS: [Law; 6] = [
    Law::Constant,
    Law::Milliseconds,
    Law::Jiffies,
    Law::PollSlack,
    Law::Proportional,
    Law::Saturating,
];

/// A bin with fewer does not count as an interval that was seen.
const SEEN: usize = 5;
const RESAMPLES: usize = 100;
/// A law must leave at least this part less than a simpler one.
const WORTH: f64 = 0.1;
/// ... by this many standard errors over the folds.
const CERTAIN: f64 = 3.0;
/// Steps have a free phase, which always finds something in noise; where timers really are rounded,
/// that is most of what makes ticks differ.
const STEPS_EXPLAIN: f64 = 0.5;
const SEED: u64 = 0x6c61_7465;

/// A law fitted to ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Which.
    pub law: Law,
    /// Constant part, ns.
    pub constant: Interval,
    /// Factor: lateness per time asked for (proportional), or what it grows by, ns (saturating).
    pub factor: Option<Interval>,
    /// Time asked for at which half of the growth is reached, ns (saturating).
    pub half_at: Option<f64>,
    /// True if whole milliseconds are rounded down to.
    pub rounds_down: bool,
    /// Mean absolute residual of ticks it was not fitted to, ns.
    pub left: f64,
    /// What it leaves less than the constant law, 0 to 1.
    pub explains: f64,
}

/// All laws that can be fitted, and which is the one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// In the order of [`LAWS`]; those that the ticks cannot distinguish are left out.
    pub fits: Vec<Fit>,
    /// The simplest that leaves as little as any.
    pub best: Law,
    /// Ticks used.
    pub n: usize,
    /// Different times asked for, with a few ticks each.
    pub intervals: usize,
    /// Longest of these over the shortest.
    pub spread: f64,
}

impl Comparison {
    /// The fit of a law.
    pub fn fit(&self, law: Law) -> Option<&Fit> {
        self.fits.iter().find(|fit| fit.law == law)
    }

    /// True if constant, proportional and saturating can be distinguished: at least 3 different times
    /// asked for, the longest 2 times the shortest.
    pub fn has_spread(&self) -> bool {
        self.intervals >= 3 && self.spread >= 2.0
    }
}

/// Fits and compares the laws; `None` for fewer than 20 ticks.
pub fn compare(points: &[Point], steps: &Steps) -> Option<Comparison> {
    let bins = bins(points);
    let seen: Vec<f64> = bins
        .iter()
        .filter(|bin| bin.len() >= SEEN)
        .filter_map(|bin| quantile::median(&bin.iter().map(|p| p.asked).collect::<Vec<_>>()))
        .collect();
    let spread = match (seen.first(), seen.last()) {
        (Some(least), Some(most)) if *least > 0.0 => most / least,
        _ => 1.0,
    };
    let cells = cells(&bins);
    let n: usize = cells.iter().map(Vec::len).sum();
    if n < 20 {
        return None;
    }
    let mut comparison =
        Comparison { fits: Vec::new(), best: Law::Constant, n, intervals: seen.len(), spread };
    let mut lefts: Vec<(Law, Vec<f64>)> = Vec::new();
    for law in LAWS {
        let can_be_seen = match law {
            Law::Constant | Law::Milliseconds | Law::Jiffies => true,
            Law::PollSlack => steps.slack.is_some(),
            Law::Proportional => comparison.has_spread(),
            Law::Saturating => seen.len() >= 4 && spread >= 10.0,
        };
        if !can_be_seen {
            continue;
        }
        let all: Vec<Point> = cells.concat();
        let shape = Shape::fit(law, &all, steps, None);
        if law == Law::Milliseconds && shape.leaves_no_time_to_wake(steps) {
            continue;
        }
        let left = cross_validate(law, &cells, steps);
        let (constant, factor) = intervals(&shape, &cells, steps);
        comparison.fits.push(Fit {
            law,
            constant,
            factor,
            half_at: (law == Law::Saturating).then_some(shape.theta),
            rounds_down: law == Law::Milliseconds && shape.down,
            left: mean(&left),
            explains: 0.0,
        });
        lefts.push((law, left));
    }
    comparison.best = simplest_of_the_best(&lefts);
    let constant = comparison.fits.first().map_or(0.0, |fit| fit.left);
    for fit in &mut comparison.fits {
        fit.explains = if constant > 0.0 { 1.0 - fit.left / constant } else { 0.0 };
    }
    Some(comparison)
}

/// The first law that no later one beats clearly.
fn simplest_of_the_best(lefts: &[(Law, Vec<f64>)]) -> Law {
    let constant = lefts.first().map_or(0.0, |(_, left)| mean(left));
    let is_noise = |(law, left): &&(Law, Vec<f64>)| {
        matches!(law, Law::Milliseconds | Law::Jiffies)
            && mean(left) > (1.0 - STEPS_EXPLAIN) * constant
    };
    let mut best: Option<&(Law, Vec<f64>)> = None;
    for other in lefts.iter().filter(|other| !is_noise(other)) {
        let beats = best.is_none_or(|(_, left)| {
            let gains: Vec<f64> = left.iter().zip(&other.1).map(|(a, b)| a - b).collect();
            let gain = mean(&gains);
            gain > WORTH * mean(left) && gain > CERTAIN * standard_error(&gains)
        });
        if beats {
            best = Some(other);
        }
    }
    best.map_or(Law::Constant, |(law, _)| *law)
}

/// Mean absolute residual of each cell under the law fitted to the others.
fn cross_validate(law: Law, cells: &[Vec<Point>], steps: &Steps) -> Vec<f64> {
    (0..cells.len())
        .filter(|left_out| !cells[*left_out].is_empty())
        .map(|left_out| {
            let others: Vec<Point> = cells
                .iter()
                .enumerate()
                .filter(|(n, _)| *n != left_out)
                .flat_map(|(_, cell)| cell.iter().copied())
                .collect();
            let shape = Shape::fit(law, &others, steps, None);
            let residuals: Vec<f64> =
                cells[left_out].iter().map(|p| (p.late - shape.at(p)).abs()).collect();
            mean(&residuals)
        })
        .collect()
}

/// 95 % intervals of constant and factor: the law refitted to cells drawn with replacement.
fn intervals(shape: &Shape, cells: &[Vec<Point>], steps: &Steps) -> (Interval, Option<Interval>) {
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut drawn = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let points: Vec<Point> =
            (0..cells.len()).flat_map(|_| cells[rng.usize(..cells.len())].clone()).collect();
        let refitted = Shape::fit(shape.law, &points, steps, Some(shape));
        drawn.0.push(refitted.constant);
        drawn.1.push(refitted.factor);
    }
    let bounds = |estimate: f64, values: &[f64]| Interval {
        estimate,
        low: quantile::of(values, 0.025).unwrap_or(estimate).min(estimate),
        high: quantile::of(values, 0.975).unwrap_or(estimate).max(estimate),
        confidence: 0.95,
    };
    let has_factor = matches!(shape.law, Law::Proportional | Law::Saturating);
    let factor = has_factor.then(|| bounds(shape.factor, &drawn.1));
    (bounds(shape.constant, &drawn.0), factor)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn standard_error(values: &[f64]) -> f64 {
    let (n, mean) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (squares / (n - 1.0).max(1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: Steps = Steps { jiffy: 4e6, slack: Some(50_000.0), waking: 0.0 };

    /// Ticks that ask for `asked` with some noise of the wake-up and a few very late ones.
    fn ticks(asked: &[f64], each: usize, late: impl Fn(f64, f64) -> f64) -> Vec<Point> {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut now = 0.0;
        let mut points = Vec::new();
        for _ in 0..each {
            for asked in asked {
                let asked = asked * (0.999 + 0.002 * rng.f64());
                now += rng.f64() * 1e6;
                let noise = 3_000.0 * rng.f64() + if rng.u8(..100) < 2 { 2e6 } else { 0.0 };
                let late = late(now, asked) + noise;
                points.push(Point { asked, late, phase: (now + asked).rem_euclid(4e6) });
                now += asked + late;
            }
        }
        points
    }

    fn best(points: &[Point]) -> Comparison {
        compare(points, &STEPS).unwrap()
    }

    #[test]
    fn the_storys_timers_are_proportional_with_0_4_percent() {
        let points = ticks(&[5.5e6, 14.6e6, 20e6, 20e6, 20e6], 40, |_, asked| asked * 0.004);
        let found = best(&points);
        assert_eq!(found.best, Law::Proportional, "{found:#?}");
        let factor = found.fit(Law::Proportional).unwrap().factor.unwrap();
        assert!(factor.contains(0.004) || (factor.estimate - 0.004).abs() < 5e-5, "{factor:?}");
        assert!(factor.low > 0.0038 && factor.high < 0.0042, "{factor:?}");
    }

    /// On a shared host what waking up takes differs from one time asked for to the next.
    #[test]
    fn a_line_whose_middle_wakes_later_does_not_saturate() {
        let asked = [5.5e6, 14.6e6, 20e6, 20e6, 20e6, 200e6];
        let wakes = |asked: f64| if (1e7..1e8).contains(&asked) { 160_000.0 } else { 60_000.0 };
        let found = best(&ticks(&asked, 40, |_, asked| asked * 0.004 + wakes(asked)));
        assert_eq!(found.best, Law::Proportional, "{found:#?}");
    }

    #[test]
    fn an_idle_host_saturates() {
        let asked = [1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8];
        let found = best(&ticks(&asked, 60, |_, x| 51_000.0 + 75_000.0 * x / (x + 1e7)));
        assert_eq!(found.best, Law::Saturating, "{found:#?}");
        let fit = found.fit(Law::Saturating).unwrap();
        assert!((fit.constant.estimate - 52_500.0).abs() < 3_000.0, "{fit:?}");
        assert!((fit.half_at.unwrap() / 1e7 - 1.0).abs() < 0.5, "{fit:?}");
    }

    #[test]
    fn slack_is_constant() {
        let found = best(&ticks(&[1e6, 5e6, 2e7, 1e8], 60, |_, _| 5_057_000.0));
        assert_eq!(found.best, Law::Constant, "{found:#?}");
        let fit = found.fit(Law::Constant).unwrap();
        assert!((fit.constant.estimate - 5_058_500.0).abs() < 500.0, "{fit:?}");
    }

    #[test]
    fn whole_milliseconds_are_seen_even_at_one_interval() {
        let mut rng = fastrand::Rng::with_seed(1);
        let points: Vec<Point> = (0..400)
            .map(|_| {
                let asked = 20e6 - rng.f64() * 1e6;
                let late = (asked / 1e6).ceil() * 1e6 - asked + 60_000.0 + 2_000.0 * rng.f64();
                Point { asked, late, phase: rng.f64() * 4e6 }
            })
            .collect();
        let found = best(&points);
        assert_eq!(found.best, Law::Milliseconds, "{found:#?}");
        assert!(!found.fit(Law::Milliseconds).unwrap().rounds_down);
    }

    #[test]
    fn jiffies_are_seen_by_their_grid() {
        // As SO_RCVTIMEO does: whole jiffies and one more from the last tick on.
        let points = ticks(&[1e6, 2.5e6, 9e6], 60, |now, asked| {
            let from = ((now - 1.1e6) / 4e6).floor() * 4e6 + 1.1e6;
            from + (asked / 4e6).ceil() * 4e6 + 4e6 - now - asked
        });
        let found = best(&points);
        assert_eq!(found.best, Law::Jiffies, "{found:#?}");
    }

    #[test]
    fn the_tolerance_of_poll_is_not_taken_for_an_error_of_arithmetic() {
        let asked = [2e6, 1e7, 3e7, 1e8, 3e8];
        let found = best(&ticks(&asked, 40, |_, x| 7_000.0 + (x / 1000.0).max(50_000.0)));
        assert_eq!(found.best, Law::PollSlack, "{found:#?}");
    }

    #[test]
    fn one_interval_is_no_spread() {
        let found = best(&ticks(&[20e6], 200, |_, _| 80_000.0));
        assert!(!found.has_spread());
        assert!(found.fit(Law::Proportional).is_none());
        assert_eq!(found.best, Law::Constant);
        assert!(compare(&[], &STEPS).is_none());
    }
}
