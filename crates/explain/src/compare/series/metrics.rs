//! What a series of runs is looked through for.

use std::collections::BTreeSet;

use model::{LatencyFigure, RunFigures, SeriesKind, TrendLine};

use super::SeriesRun;

/// Quantiles that a latency is looked at by, as places in [`LatencyFigure::PROBABILITIES`]: enough
/// to see a second mode or a longer tail, few enough for a thousand runs.
const QUANTILES: [usize; 8] = [1, 4, 7, LatencyFigure::P50, 13, 16, 19, LatencyFigure::P99];
/// The place of the median in those, and that of p99.
const MIDDLE: usize = 3;
const LAST: usize = 7;
/// A latency that fewer than this part of the runs have is no series.
const LEAST_PART: f64 = 0.8;
/// An account or cause that is never more than this part of the wall time is none, either.
const LEAST_SHARE: f64 = 0.01;

/// One figure, or a vector of them, of each run.
pub struct Metric {
    pub kind: SeriesKind,
    pub name: String,
    /// Of latencies logarithms; shares as they are.
    pub vectors: Vec<Vec<f64>>,
    /// The place of each vector's run.
    pub places: Vec<usize>,
    /// The coordinate that is shown.
    pub middle: usize,
    /// The coordinate of p99, if there is one.
    pub p99: Option<usize>,
}

impl Metric {
    /// A value as it is shown.
    pub fn shown(&self, value: f64) -> f64 {
        if self.kind == SeriesKind::Latency { value.exp() } else { value }
    }

    /// Over all of so many runs.
    pub fn line(&self, runs: usize) -> TrendLine {
        let values = |coordinate: usize| {
            let mut values = vec![None; runs];
            for (place, vector) in self.places.iter().zip(&self.vectors) {
                values[*place] = Some(self.shown(vector[coordinate]));
            }
            values
        };
        TrendLine {
            kind: self.kind,
            name: self.name.clone(),
            values: values(self.middle),
            p99: self.p99.map(values),
        }
    }
}

/// All that the runs have.
pub fn all(runs: &[SeriesRun]) -> Vec<Metric> {
    let figures = || runs.iter().map(|run| &run.figures);
    let names: BTreeSet<&String> = figures().flat_map(|run| run.latencies.keys()).collect();
    let mut metrics: Vec<Metric> =
        names.into_iter().filter_map(|name| latency(runs, name)).collect();
    let accounts: BTreeSet<_> = figures().flat_map(|run| run.accounts.keys()).copied().collect();
    for account in accounts {
        let part = |run: &RunFigures| {
            *run.accounts.get(&account).unwrap_or(&0) as f64 / run.wall_ns.max(1) as f64
        };
        metrics.extend(share(runs, SeriesKind::Account, &account.to_string(), part));
    }
    let causes: BTreeSet<&String> =
        figures().flat_map(|run| &run.causes).map(|figure| &figure.cause).collect();
    for id in causes {
        let part = |run: &RunFigures| run.cause(id).map_or(0.0, |figure| figure.wall_share);
        metrics.extend(share(runs, SeriesKind::Cause, id, part));
    }
    metrics
}

fn latency(runs: &[SeriesRun], name: &str) -> Option<Metric> {
    let with: Vec<(usize, &Vec<u64>)> = runs
        .iter()
        .enumerate()
        .filter_map(|(place, run)| Some((place, &run.figures.latencies.get(name)?.quantiles_ns)))
        .filter(|(_, quantiles)| quantiles.len() > LatencyFigure::P50)
        .collect();
    if (with.len() as f64) < LEAST_PART * runs.len() as f64 {
        return None;
    }
    // As many as all of them carry: p99 where no run has too few values for it.
    let shortest = with.iter().map(|(_, quantiles)| quantiles.len()).min()?;
    let carried: Vec<usize> = QUANTILES.into_iter().filter(|place| *place < shortest).collect();
    let vector = |quantiles: &Vec<u64>| {
        carried.iter().map(|place| (quantiles[*place].max(1) as f64).ln()).collect()
    };
    Some(Metric {
        kind: SeriesKind::Latency,
        name: name.to_owned(),
        vectors: with.iter().map(|(_, quantiles)| vector(quantiles)).collect(),
        places: with.iter().map(|(place, _)| *place).collect(),
        middle: MIDDLE,
        p99: (carried.len() > LAST).then_some(LAST),
    })
}

fn share(
    runs: &[SeriesRun],
    kind: SeriesKind,
    name: &str,
    part: impl Fn(&RunFigures) -> f64,
) -> Option<Metric> {
    let parts: Vec<f64> = runs.iter().map(|run| part(&run.figures)).collect();
    let most = parts.iter().copied().fold(0.0, f64::max);
    (most >= LEAST_SHARE).then(|| Metric {
        kind,
        name: name.to_owned(),
        vectors: parts.into_iter().map(|part| vec![part]).collect(),
        places: (0..runs.len()).collect(),
        middle: 0,
        p99: None,
    })
}
