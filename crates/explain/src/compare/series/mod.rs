//! Since when are runs as they are: change points of latencies, accounts and causes, each with what
//! changed around the program at the same time.

mod metrics;
#[cfg(test)]
mod tests;
mod week;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Difference, MetricChange, RunFigures, RunId, RunSummary, Series, SeriesChange, SeriesKind,
    Trend,
};
use stats::changes::{self, ALPHA};
use stats::quantile;

use self::metrics::Metric;

/// Fewer runs have no two levels.
const LEAST_RUNS: usize = 2 * changes::LEAST_SEGMENT;
/// A latency has to move by this part, ...
const LEAST_RATIO: f64 = 0.02;
/// ... a share of the wall time by this much.
const LEAST_SHARE: f64 = 0.01;
/// Changes of so many runs apart are one: a date is good to a run.
const SAME: usize = 1;
/// A fact that changes more often than once in so many runs says nothing by changing.
const RESTLESS: usize = 4;

/// A run of a series.
pub struct SeriesRun {
    /// Its number.
    pub id: RunId,
    /// The program or target.
    pub target: String,
    /// When it began, ns since 1970 (UTC).
    pub started_unix_ns: i64,
    /// Whether a change with this run was dismissed.
    pub dismissed: bool,
    /// What it says.
    pub figures: RunFigures,
}

/// The label of a run whose change was dismissed: so that it goes with the run, wherever that goes.
pub const DISMISSED: &str = "series-change";

impl SeriesRun {
    /// Of a stored run with its figures; `None` of one that was sampled, whose shares are estimates.
    pub fn of(run: &RunSummary, figures: RunFigures) -> Option<SeriesRun> {
        (!run.header.sampled).then(|| SeriesRun {
            id: run.id,
            target: run.header.target.to_string(),
            started_unix_ns: run.header.started_unix_ns,
            dismissed: run.header.labels.contains_key(DISMISSED),
            figures,
        })
    }
}

/// A series for each program on each host that has runs enough, the largest first.
pub fn series(runs: Vec<SeriesRun>) -> Vec<Series> {
    trends(runs).into_iter().map(|trend| trend.series).collect()
}

/// The same with the figures that were looked at.
pub fn trends(runs: Vec<SeriesRun>) -> Vec<Trend> {
    let mut groups = BTreeMap::<String, Vec<SeriesRun>>::new();
    for run in runs {
        let host = run.figures.facts.get("host.name").cloned();
        let group = std::iter::once(run.target.clone()).chain(host).collect::<Vec<_>>().join(", ");
        groups.entry(group).or_default().push(run);
    }
    let mut all: Vec<Trend> = groups
        .into_iter()
        .filter(|(_, runs)| runs.len() >= LEAST_RUNS)
        .map(|(group, mut runs)| {
            runs.sort_by_key(|run| (run.started_unix_ns, run.id));
            one(group, &runs)
        })
        .collect();
    all.sort_by_key(|trend| std::cmp::Reverse(trend.series.runs));
    all
}

fn one(group: String, runs: &[SeriesRun]) -> Trend {
    let metrics = metrics::all(runs);
    Trend {
        series: changes_in(group, runs, &metrics),
        runs: runs.iter().map(|run| run.id).collect(),
        started_unix_ns: runs.iter().map(|run| run.started_unix_ns).collect(),
        lines: metrics.iter().map(|metric| metric.line(runs.len())).collect(),
    }
}

fn changes_in(group: String, runs: &[SeriesRun], metrics: &[Metric]) -> Series {
    let tried = metrics.len();
    let mut at = BTreeMap::<usize, Vec<MetricChange>>::new();
    for metric in metrics {
        for (place, change) in changes_of(metric, tried) {
            at.entry(place).or_default().push(change);
        }
    }
    let mut changes: Vec<SeriesChange> = joined(at)
        .into_iter()
        .map(|(place, metrics)| SeriesChange {
            run: runs[place].id,
            started_unix_ns: runs[place].started_unix_ns,
            metrics,
            facts: facts(runs, place),
            dismissed: around(runs.len(), place).any(|at| runs[at].dismissed),
        })
        .collect();
    for change in &mut changes {
        change.metrics.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    Series {
        group,
        runs: runs.len(),
        from_to_unix_ns: [runs[0].started_unix_ns, runs[runs.len() - 1].started_unix_ns],
        tried,
        changes,
        week: week::over_last(runs),
    }
}

/// The changes of a metric that matter, by the place of their run.
fn changes_of(metric: &Metric, tried: usize) -> Vec<(usize, MetricChange)> {
    let found = changes::find(&metric.vectors);
    let ends: Vec<usize> = std::iter::once(0)
        .chain(found.iter().map(|change| change.at))
        .chain([metric.vectors.len()])
        .collect();
    let levels = found.iter().zip(ends.windows(3)).filter_map(|(change, ends)| {
        let level = |coordinate: usize, from: usize, to: usize| {
            let values: Vec<f64> =
                metric.vectors[from..to].iter().map(|run| run[coordinate]).collect();
            quantile::median(&values).map(|value| metric.shown(value))
        };
        let both = |coordinate: usize| {
            Some([level(coordinate, ends[0], ends[1])?, level(coordinate, ends[1], ends[2])?])
        };
        let [before, after] = both(metric.middle)?;
        let change = MetricChange {
            kind: metric.kind,
            name: metric.name.clone(),
            before,
            after,
            p99: metric.p99.and_then(both),
            p: (change.p * tried as f64).min(1.0),
        };
        let matters = change.p <= ALPHA && size(&change) >= least(metric.kind);
        matters.then(|| (metric.places[ends[1]], change))
    });
    levels.collect()
}

/// How far it moved: latencies as the logarithm of a ratio, shares as they are.
fn size(change: &MetricChange) -> f64 {
    if change.kind != SeriesKind::Latency {
        return (change.after - change.before).abs();
    }
    let ratio = |[before, after]: [f64; 2]| (after.max(1.0) / before.max(1.0)).ln().abs();
    ratio([change.before, change.after]).max(change.p99.map_or(0.0, ratio))
}

fn least(kind: SeriesKind) -> f64 {
    if kind == SeriesKind::Latency { LEAST_RATIO.ln_1p() } else { LEAST_SHARE }
}

/// Changes of neighbouring runs as one, at the run that most of them name.
fn joined(at: BTreeMap<usize, Vec<MetricChange>>) -> Vec<(usize, Vec<MetricChange>)> {
    let mut joined: Vec<(usize, usize, Vec<MetricChange>)> = Vec::new();
    for (place, changes) in at {
        match joined.last_mut() {
            Some((at, most, all)) if place - *at <= SAME => {
                if changes.len() > *most {
                    (*at, *most) = (place, changes.len());
                }
                all.extend(changes);
            }
            _ => joined.push((place, changes.len(), changes)),
        }
    }
    joined.into_iter().map(|(at, _, changes)| (at, changes)).collect()
}

fn around(runs: usize, place: usize) -> std::ops::Range<usize> {
    place.saturating_sub(SAME)..(place + SAME + 1).min(runs)
}

/// Facts that are another value behind the change than before it, and seldom change otherwise.
fn facts(runs: &[SeriesRun], place: usize) -> Vec<Difference> {
    let before = &runs[place.saturating_sub(1 + SAME)].figures.facts;
    let after = &runs[(place + SAME).min(runs.len() - 1)].figures.facts;
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let is_restless = |name: &str| {
        let value = |run: &SeriesRun| run.figures.facts.get(name).cloned();
        let times = runs.windows(2).filter(|two| value(&two[0]) != value(&two[1])).count();
        times > 1 && times * RESTLESS > runs.len()
    };
    let text = |value: Option<&String>| value.map_or("(not set)", String::as_str).to_owned();
    let changed = names.into_iter().filter_map(|name| {
        let (before, after) = (before.get(name), after.get(name));
        let differs = before != after && !is_restless(name);
        differs.then(|| Difference { what: name.clone(), before: text(before), after: text(after) })
    });
    changed.collect()
}
