//! Unusual ticks at a beat.

use model::{JitterSeries, Period, Tick};
use stats::{periodicity, quantile};

/// Periods that things in a computer have: the second of the wall clock, its multiples and parts
/// (CPU quotas are refilled each 100 ms).
const PERIODS_MS: [f64; 7] = [1000.0, 100.0, 10.0, 2000.0, 5000.0, 10_000.0, 60_000.0];
/// p at which a beat is reported.
const ALPHA: f64 = 0.001;
/// Concentration below which it is not, however sure: most late ticks come at other times.
const GATHERED: f64 = 0.3;
/// If more of the ticks than this are late, lateness is no event.
const RARE: f64 = 0.2;
/// Median absolute deviations, and ns, that make a tick unusual.
const UNUSUAL: f64 = 8.0;
pub const UNUSUAL_NS: f64 = 5_000.0;
/// Ticks that show at which times ticks come at all.
const CLOCK: usize = 5_000;

/// The beat of unusual ticks, if there is one.
pub fn periods(series: &JitterSeries, over_ns: Option<u64>, jiffy_ns: u64) -> Vec<Period> {
    let ticks = &series.ticks;
    let wall = |tick: &Tick| tick.0 as f64 + series.to_wall_ns as f64;
    let clock: Vec<f64> = ticks.iter().step_by(ticks.len() / CLOCK + 1).map(wall).collect();
    let mut candidates: Vec<f64> = PERIODS_MS.iter().map(|ms| ms * 1e6).collect();
    candidates.push(jiffy_ns as f64);
    let times: Vec<f64> = episodes(ticks, over_ns).iter().map(|tick| wall(tick)).collect();
    let found = periodicity::beat(&times, &clock, &candidates, ALPHA);
    found
        .filter(|fold| fold.concentration >= GATHERED)
        .map(|fold| Period {
            period_ns: fold.period as u64,
            phase_ns: fold.phase as u64,
            concentration: fold.concentration,
            n: fold.n as u64,
            p: fold.p,
        })
        .into_iter()
        .collect()
}

/// The first tick of each row of unusual ones: those over the threshold, if one is given and few
/// are, else those far from the median on either side.
fn episodes(ticks: &[Tick], over_ns: Option<u64>) -> Vec<&Tick> {
    let late: Vec<f64> = ticks.iter().map(|tick| tick.1 as f64).collect();
    let Some(median) = quantile::median(&late) else { return Vec::new() };
    let away: Vec<f64> = late.iter().map(|late| (late - median).abs()).collect();
    let far = (UNUSUAL * quantile::median(&away).unwrap_or(0.0)).max(UNUSUAL_NS);
    let over = over_ns.map(|over| over as f64).filter(|over| {
        let n = late.iter().filter(|late| *late > over).count();
        (n as f64) <= RARE * late.len() as f64
    });
    let is_unusual = |tick: &Tick| match over {
        Some(over) => tick.1 as f64 > over,
        None => (tick.1 as f64 - median).abs() > far,
    };
    let mut first = Vec::new();
    let mut before = false;
    for tick in ticks {
        let unusual = is_unusual(tick);
        if unusual && !before {
            first.push(tick);
        }
        before = unusual;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick each 10 ms, 20 us late; those for which `is_late` is true 300 us.
    fn ticks(n: u64, is_late: impl Fn(u64) -> bool) -> Vec<Tick> {
        let tick = |n| Tick(n * 10_000_000, if is_late(n) { 300_000 } else { 20_000 }, 10_000_000);
        (1..=n).map(tick).collect()
    }

    fn series(ticks: Vec<Tick>) -> JitterSeries {
        let mut series = crate::testing::timer_series("timerfd", 10_000_000, &[]);
        series.ticks = ticks;
        series
    }

    #[test]
    fn late_ticks_once_a_second_are_a_beat() {
        let found = periods(&series(ticks(6_000, |n| n % 100 == 5 + n / 100 % 5)), None, 4_000_000);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].period_ns, found[0].n), (1_000_000_000, 60));
        assert!(found[0].phase_ns.abs_diff(70_000_000) < 10_000_000, "{found:?}");
        // At no time in particular: 7 and 11 have no common beat with the second.
        let found = periods(&series(ticks(6_000, |n| n * n % 101 == 7)), None, 4_000_000);
        assert_eq!(found, []);
    }

    #[test]
    fn ticks_that_are_late_in_a_row_are_one_event() {
        let ticks = ticks(1_000, |n| (100..150).contains(&n) || n == 400);
        let first: Vec<u64> = episodes(&ticks, None).iter().map(|t| t.0 / 10_000_000).collect();
        assert_eq!(first, [100, 400]);
        assert!(episodes(&ticks, Some(1_000_000)).is_empty());
    }
}
