//! Early ticks that the next one makes up for.

use model::{EarlyLatePairs, JitterSeries, Tick};
use stats::pairs::early_late;
use stats::periodicity;

use crate::timers::beats::UNUSUAL_NS;

/// Pairs among the ticks of the main timer: a program may print those of others in between.
pub fn pairs(series: &JitterSeries) -> Option<EarlyLatePairs> {
    let main = main_timer(series.interval_ns as f64, &series.ticks);
    let late: Vec<f64> = main.iter().map(|tick| tick.1 as f64).collect();
    let found = early_late(&late, UNUSUAL_NS)?;
    // A single one is chance.
    (found.n >= 3).then(|| EarlyLatePairs {
        pairs: found.n as u64,
        early_ns: found.early,
        late_ns: found.late,
        net_ns: found.net,
        every_ns: found.every.map(|ticks| ticks * series.interval_ns as f64),
    })
}

/// Ticks at whole intervals from each other; all, if they are no such series.
fn main_timer(interval: f64, ticks: &[Tick]) -> Vec<&Tick> {
    let all: Vec<&Tick> = ticks.iter().collect();
    let Some(first) = ticks.first() else { return all };
    let since: Vec<f64> = ticks.iter().map(|tick| tick.0 as f64 - first.0 as f64).collect();
    let Some(fold) = periodicity::fold(&since, interval) else { return all };
    let tolerance = interval / 100.0;
    let main: Vec<&Tick> = ticks
        .iter()
        .zip(&since)
        .filter(|(_, since)| {
            let off = (*since - fold.phase).rem_euclid(interval);
            off.min(interval - off) < tolerance
        })
        .map(|(tick, _)| tick)
        .collect();
    if main.len() * 2 > ticks.len() { main } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_comes_early_and_the_next_at_its_usual_time_are_a_pair() {
        let late = |n: u64| if n % 50 == 7 { -60_000 } else { 20_000 };
        let ticks = (1..=500u64).map(|n| Tick(n * 20_000_000, late(n), 20_000_000)).collect();
        let mut series = crate::testing::timer_series("program", 20_000_000, &[]);
        series.ticks = ticks;
        let found = pairs(&series).unwrap();
        assert_eq!((found.pairs, found.net_ns), (10, 0.0));
        assert_eq!((found.early_ns, found.late_ns), (-80_000.0, 80_000.0));
        assert_eq!(found.every_ns, Some(1e9));
        series.ticks.truncate(60);
        assert_eq!(pairs(&series), None, "one or two are chance");
    }
}
