//! Runs of months: since when something is as it is.

use serde::{Deserialize, Serialize};
use stats::Interval;

use crate::{Difference, RunId};

/// Runs of one program on one host, in the order in which they were recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Program and host.
    pub group: String,
    /// How many runs.
    pub runs: usize,
    /// When the first and the last began, ns since 1970 (UTC).
    pub from_to_unix_ns: [i64; 2],
    /// How many latencies, accounts and causes were looked at.
    pub tried: usize,
    /// When something changed, oldest first.
    pub changes: Vec<SeriesChange>,
    /// The last seven days over the seven before; `None` without 6 pairs of the same weekday and
    /// hour.
    pub week: Option<Vec<WeekChange>>,
}

/// A series with the figures that were looked at, to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// What was found.
    pub series: Series,
    /// The runs, oldest first.
    pub runs: Vec<RunId>,
    /// When each began, ns since 1970 (UTC).
    pub started_unix_ns: Vec<i64>,
    /// What was looked at.
    pub lines: Vec<TrendLine>,
}

/// A figure over runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct TrendLine {
    /// What it is.
    pub kind: SeriesKind,
    /// As in [`MetricChange::name`].
    pub name: String,
    /// Of each run, in the unit of [`MetricChange::before`]; `None` where a run has no such figure.
    pub values: Vec<Option<f64>>,
    /// Of latencies p99, ns, where all runs have values enough for it.
    pub p99: Option<Vec<Option<f64>>>,
}

/// A run with which something changed, and stayed so for 3 runs at least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesChange {
    /// The first run that is other; `whylag series --dismiss` takes its number.
    pub run: RunId,
    /// When it began, ns since 1970 (UTC).
    pub started_unix_ns: i64,
    /// What changed then, the largest change first.
    pub metrics: Vec<MetricChange>,
    /// Facts that changed then.
    pub facts: Vec<Difference>,
    /// Somebody has seen it and wants no more of it.
    pub dismissed: bool,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricChange {
    /// What it is.
    pub kind: SeriesKind,
    /// `syscall:read`, `blocked:futex`, `slow-clocksource`.
    pub name: String,
    /// Of latencies the median run's p50, ns; else the median share of the wall time, 0 to 1. From
    /// the change before to this one.
    pub before: f64,
    /// From this change to the next.
    pub after: f64,
    /// Of latencies the same of p99, before and after, where the counts carry it.
    pub p99: Option<[f64; 2]>,
    /// How often chance alone makes such a change somewhere in the series, times what was looked at.
    pub p: f64,
}

/// Which kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// A latency.
    Latency,
    /// An account.
    Account,
    /// A cause.
    Cause,
}

/// This week over last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeekChange {
    /// `p50 of syscall:read`, `length`.
    pub name: String,
    /// This week over last, from pairs of the same weekday and hour.
    pub ratio: Interval,
    /// p of the exact signed-rank test, adjusted for all (Benjamini and Hochberg).
    pub p_adjusted: f64,
    /// Pairs.
    pub pairs: usize,
}
