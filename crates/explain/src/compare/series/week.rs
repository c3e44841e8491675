//! This week over last: runs of the same weekday and hour are pairs, because load has both.

use std::collections::BTreeSet;

use model::{LatencyFigure, RunFigures, WeekChange};
use stats::paired::{self, LEAST_PAIRS};
use stats::{Interval, multiple};

use super::SeriesRun;

const HOUR_NS: i64 = 3_600_000_000_000;
const WEEK_NS: i64 = 7 * 24 * HOUR_NS;

/// Every latency and the length of runs; `None` with too few pairs.
pub fn over_last(runs: &[SeriesRun]) -> Option<Vec<WeekChange>> {
    let now = runs.last()?.started_unix_ns;
    let this_week = runs.iter().filter(|run| run.started_unix_ns > now - WEEK_NS);
    let pairs: Vec<(&RunFigures, &RunFigures)> = this_week
        .filter_map(|run| Some((&a_week_before(runs, run)?.figures, &run.figures)))
        .collect();
    if pairs.len() < LEAST_PAIRS {
        return None;
    }
    let names: BTreeSet<&String> = pairs.iter().flat_map(|pair| pair.1.latencies.keys()).collect();
    let mut compared: Vec<(String, Interval, f64)> = Vec::new();
    let mut add = |name: String, value: &dyn Fn(&RunFigures) -> Option<f64>| {
        let values: Option<Vec<(f64, f64)>> =
            pairs.iter().map(|(before, after)| Some((value(before)?, value(after)?))).collect();
        if let Some(paired) = values.and_then(|values| paired::compare(&values)) {
            compared.push((name, paired.ratio, paired.p));
        }
    };
    add("length".to_owned(), &|run| Some(run.length_ns as f64));
    for name in names {
        for (word, place) in [("p50", LatencyFigure::P50), ("p99", LatencyFigure::P99)] {
            let at = |run: &RunFigures| {
                let quantiles = &run.latencies.get(name)?.quantiles_ns;
                quantiles.get(place).map(|ns| *ns as f64)
            };
            add(format!("{word} of {name}"), &at);
        }
    }
    let ps: Vec<f64> = compared.iter().map(|(_, _, p)| *p).collect();
    let adjusted = multiple::benjamini_hochberg(&ps);
    let mut changes: Vec<WeekChange> = compared
        .into_iter()
        .zip(adjusted)
        .map(|((name, ratio, _), p_adjusted)| WeekChange {
            name,
            ratio,
            p_adjusted,
            pairs: pairs.len(),
        })
        .collect();
    changes.sort_by(|a, b| a.p_adjusted.total_cmp(&b.p_adjusted));
    Some(changes)
}

/// The run that is nearest to the same hour of the same day, an hour off at most.
fn a_week_before<'a>(runs: &'a [SeriesRun], run: &SeriesRun) -> Option<&'a SeriesRun> {
    let wanted = run.started_unix_ns - WEEK_NS;
    let distance = |other: &&SeriesRun| other.started_unix_ns.abs_diff(wanted);
    let nearest = runs.iter().min_by_key(distance)?;
    (distance(&nearest) <= HOUR_NS.unsigned_abs()).then_some(nearest)
}
