//! Late ticks at a beat, and early ticks that the next one makes up for.

use model::{EarlyLatePairs, JitterSeries, Period, Tick};
use stats::{pairs, periodicity, quantile};

/// Periods that things in a computer have: the second of the wall clock, its multiples and parts
/// (CPU quotas are refilled each 100 ms).
const PERIODS_MS: [f64; 7] = [1000.0, 100.0, 10.0, 2000.0, 5000.0, 10_000.0, 60_000.0];
/// p at which a beat is told.
const ALPHA: f64 = 0.001;
/// Concentration below which it is not, however sure: most late ticks come at other times.
const GATHERED: f64 = 0.3;
/// If more of the ticks than this are late, lateness is no event.
const RARE: f64 = 0.2;
/// Median absolute deviations, and ns, that make a tick unusual.
const UNUSUAL: f64 = 8.0;
const UNUSUAL_NS: f64 = 5_000.0;
/// Ticks that show at which times ticks come at all.
const CLOCK: usize = 5_000;

/// The beat of unusual ticks, if there is one.
pub fn periods(
    series: &JitterSeries,
    ticks: &[Tick],
    over_ns: Option<u64>,
    jiffy_ns: u64,
) -> Vec<Period> {
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
pub fn episodes(ticks: &[Tick], over_ns: Option<u64>) -> Vec<&Tick> {
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

/// Pairs among the ticks of the main timer: a program may print those of others in between.
pub fn pairs(series: &JitterSeries, ticks: &[Tick]) -> Option<EarlyLatePairs> {
    let main = main_timer(series.interval_ns as f64, ticks);
    let late: Vec<f64> = main.iter().map(|tick| tick.1 as f64).collect();
    let found = pairs::early_late(&late, UNUSUAL_NS)?;
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
