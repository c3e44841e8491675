//! Latencies as a map: columns are seconds, rows are latencies, and what is counted is every value,
//! none of them averaged.

use std::collections::BTreeMap;

use model::histogram::PRECISION_KERNEL;
use model::units::{count, duration};
use model::{Histogram, JitterSeries, Outlier, OutlierKind, Run, Tick};
use serde::Serialize;

use crate::run::left_out;

const SECOND: u64 = 1_000_000_000;

/// Rows are so fine: four to a doubling.
const PRECISION: u8 = 2;

/// Columns of a map at most; those of a longer run are of several seconds.
const COLUMNS: usize = 900;

/// Columns of the map of intervals, whose moments are known.
const FINE_COLUMNS: u64 = 240;

/// Metrics that are shown: those with most time.
const METRICS: usize = 40;

/// The quantiles of the curve.
const QUANTILES: [f64; 13] =
    [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999, 1.0];

/// What was measured of one metric of all watched processes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Latency {
    /// Its name, as in JSON.
    pub metric: String,
    /// How many values.
    pub n: u64,
    /// The same as people read it, with the largest value.
    pub about: String,
    /// Length of a column.
    pub column_ns: u64,
    /// The lowest value of each row, and behind the last its end.
    pub rows: Vec<u64>,
    /// In time order.
    pub columns: Vec<Column>,
    /// For each row which part of all values is in it or below, 0 to 1.
    pub up_to: Vec<f64>,
    /// (quantile, value): as many as n values can tell.
    pub quantiles: Vec<(f64, u64)>,
}

/// The values that ended in one second, or in several.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Column {
    /// Begin, since the start of the run.
    pub from_ns: u64,
    /// How many values.
    pub n: u64,
    /// The largest, exactly.
    pub max_ns: u64,
    /// (row, count).
    pub cells: Vec<(u32, u64)>,
}

/// The latencies of a run: those of requests first, then intervals kept whole, then what was counted
/// each second, most time first.
pub fn latencies(run: &Run, intervals: &[Outlier]) -> Vec<Latency> {
    let mut by_metric: BTreeMap<(bool, String), Vec<(u64, &Histogram)>> = BTreeMap::new();
    for second in &run.messages.seconds {
        if let Some(flow) = run.messages.flow(second.program, second.flow) {
            let key = (false, flow.metric_name(second.metric));
            by_metric.entry(key).or_default().push((second.start_ns, &second.histogram));
        }
    }
    for second in run.seconds.iter().filter(|second| !second.metric.is_of_windows()) {
        let key = (true, second.metric.to_string());
        by_metric.entry(key).or_default().push((second.start_ns, &second.histogram));
    }
    let time = |seconds: &[(u64, &Histogram)]| {
        seconds.iter().fold(0u64, |sum, (_, of)| sum.saturating_add(of.sum()))
    };
    let mut all: Vec<_> = by_metric.into_iter().collect();
    all.sort_by_key(|((thread, _), seconds)| (*thread, std::cmp::Reverse(time(seconds))));
    all.truncate(METRICS);
    let requests = all.iter().take_while(|((thread, _), _)| !thread).count();
    let seconds = (run.length_ns() / SECOND).div_ceil(COLUMNS as u64).max(1);
    let made = all.into_iter().filter_map(|((_, metric), values)| {
        latency(run, metric, &values, seconds.saturating_mul(SECOND))
    });
    let mut made: Vec<Latency> = made.collect();
    let timers = run.jitter.iter().flat_map(|jitter| &jitter.series);
    made.extend(timers.filter_map(|series| lateness(run, series)));
    if let Some(kept) = kept(run, intervals) {
        made.insert(requests.min(made.len()), kept);
    }
    made
}

/// The intervals off the CPU that were kept whole, by the time that each ended.
fn kept(run: &Run, intervals: &[Outlier]) -> Option<Latency> {
    let is_whole = |o: &&Outlier| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue);
    let whole = intervals.iter().filter(is_whole);
    let (columns, column_ns) =
        fine_columns(run, whole.map(|outlier| (outlier.end_ns(), outlier.duration_ns)));
    let values: Vec<(u64, &Histogram)> = columns.iter().map(|(at, of)| (*at, of)).collect();
    let name = format!("off the CPU for {} and longer", duration(run.header.threshold_ns));
    let made = latency(run, name, &values, column_ns)?;
    Some(Latency { about: made.about + &left_out(run, intervals), ..made })
}

/// How late the ticks of a timer came, by the time that each was meant for.
fn lateness(run: &Run, series: &JitterSeries) -> Option<Latency> {
    let late = series.ticks.iter().filter(|Tick(_, late_ns, _)| *late_ns > 0);
    let late = late.map(|Tick(intended_ns, late_ns, _)| (*intended_ns, late_ns.unsigned_abs()));
    let (columns, column_ns) = fine_columns(run, late);
    let values: Vec<(u64, &Histogram)> = columns.iter().map(|(at, of)| (*at, of)).collect();
    let name = format!("lateness of {} {}", series.source, duration(series.interval_ns));
    latency(run, name, &values, column_ns)
}

/// Values by the moments that they belong to.
fn fine_columns(
    run: &Run,
    values: impl Iterator<Item = (u64, u64)>,
) -> (BTreeMap<u64, Histogram>, u64) {
    let column_ns = run.length_ns().div_ceil(FINE_COLUMNS).max(1);
    let mut columns: BTreeMap<u64, Histogram> = BTreeMap::new();
    for (at_ns, ns) in values {
        let from = at_ns.saturating_sub(run.header.started_ns) / column_ns * column_ns;
        let empty = || Histogram::new(PRECISION_KERNEL);
        let column = columns.entry(run.header.started_ns.saturating_add(from));
        column.or_insert_with(empty).record(ns);
    }
    (columns, column_ns)
}

fn latency(
    run: &Run,
    metric: String,
    values: &[(u64, &Histogram)],
    column_ns: u64,
) -> Option<Latency> {
    let precision = values.iter().map(|(_, values)| values.precision()).max()?;
    let mut all = Histogram::new(precision);
    for (_, values) in values.iter().filter(|(_, values)| values.precision() == precision) {
        all.merge(values);
    }
    let (lowest, highest) = (all.min()?, all.max()?);
    let index = |ns: u64| Histogram::index_of(ns, PRECISION);
    // A run file may say that the lowest is above the highest.
    let (first, last) = (index(lowest.min(highest)), index(lowest.max(highest)));
    let rows = (first..=last + 1).map(|row| Histogram::bounds_of(row, PRECISION).0).collect();
    let n = all.count();
    let shown = |q: &f64| *q == 1.0 || (1.0 - q) * n as f64 >= 1.0;
    let quantiles = QUANTILES.into_iter().filter(shown);
    let columns = columns(run, values, first, column_ns);
    Some(Latency {
        about: format!("n = {}, at most {}", count(n), duration(highest)),
        up_to: up_to(&columns, (last + 1 - first) as usize),
        quantiles: quantiles.filter_map(|q| Some((q, all.quantile(q)?))).collect(),
        columns,
        column_ns,
        metric,
        n,
        rows,
    })
}

/// The empirical distribution, at the end of each row.
fn up_to(columns: &[Column], rows: usize) -> Vec<f64> {
    let mut counts = vec![0u64; rows];
    for (row, count) in columns.iter().flat_map(|column| &column.cells) {
        // Nor need its counts lie between the two.
        if let Some(counted) = counts.get_mut(*row as usize) {
            *counted = counted.saturating_add(*count);
        }
    }
    let total = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count)).max(1);
    let mut sum = 0u64;
    let part = |count: u64| {
        sum = sum.saturating_add(count);
        sum as f64 / total as f64
    };
    counts.into_iter().map(part).collect()
}

/// The values by time. Counts are summed where a column is of several seconds, and its largest value
/// is that of all.
fn columns(run: &Run, values: &[(u64, &Histogram)], first: u32, column_ns: u64) -> Vec<Column> {
    let mut columns: BTreeMap<u64, (Column, BTreeMap<u32, u64>)> = BTreeMap::new();
    for (start_ns, values) in values {
        let from_ns = start_ns.saturating_sub(run.header.started_ns);
        // A second begins when it was read, so it is not moved where it has a column of its own.
        let place = if column_ns > SECOND { from_ns / column_ns * column_ns } else { from_ns };
        let empty = || Column { from_ns: place, n: 0, max_ns: 0, cells: Vec::new() };
        let (column, cells) = columns.entry(place).or_insert_with(|| (empty(), BTreeMap::new()));
        column.n = column.n.saturating_add(values.count());
        column.max_ns = column.max_ns.max(values.max().unwrap_or(0));
        for (low, _, n) in values.ranges() {
            let row = Histogram::index_of(low, PRECISION).saturating_sub(first);
            let cell = cells.entry(row).or_default();
            *cell = cell.saturating_add(n);
        }
    }
    let finished = |(mut column, cells): (Column, BTreeMap<u32, u64>)| {
        column.cells = cells.into_iter().collect();
        column
    };
    columns.into_values().map(finished).collect()
}
