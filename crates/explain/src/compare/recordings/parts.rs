//! Facts, accounts, causes and latencies of two sets of runs.

use std::collections::BTreeSet;

use model::{
    Account, AccountDelta, CauseDelta, ComparedSide, Difference, LatencyDelta, LatencyFigure,
    RunFigures, Shifted,
};
use stats::proportion::{Count, fisher};
use stats::shift::{LEAST_RUNS, unpaired};
use stats::{multiple, rank};

use super::Side;

/// Latencies that count work: as many of them are served, whatever they take.
const WORK: [&str; 2] = ["request ", "message "];

/// The kind of request or message that all runs have and that there are most of.
pub fn unit<'a>(runs: impl Iterator<Item = &'a RunFigures>) -> Option<String> {
    let runs: Vec<&RunFigures> = runs.collect();
    let of_work = |name: &&String| WORK.iter().any(|kind| name.starts_with(kind));
    let names = runs.first()?.latencies.keys().filter(of_work);
    let counted = names.filter_map(|name| {
        let counts: Option<Vec<u64>> =
            runs.iter().map(|run| Some(run.latencies.get(name)?.count)).collect();
        Some((counts?.iter().sum::<u64>(), name))
    });
    counted.max_by_key(|(count, _)| *count).map(|(_, name)| name.clone())
}

/// How many units a run has.
pub fn units(run: &RunFigures, unit: Option<&str>) -> u64 {
    let counted = unit.and_then(|unit| run.latencies.get(unit));
    counted.map_or(1, |latency| latency.count.max(1))
}

/// Facts that are one value on a side, and another one on the other.
pub fn differences([a, b]: &[Side<'_>; 2]) -> Vec<Difference> {
    let names: BTreeSet<&String> =
        a.runs.iter().chain(&b.runs).flat_map(|run| run.facts.keys()).collect();
    let only = |side: &Side<'_>, name: &str| {
        let values: BTreeSet<Option<String>> =
            side.runs.iter().map(|run| run.facts.get(name).cloned()).collect();
        let one = values.len() == 1;
        values.into_iter().next().filter(|_| one)
    };
    let text = |value: Option<String>| value.unwrap_or_else(|| "(not set)".to_owned());
    let differs = names.into_iter().filter_map(|name| {
        let (before, after) = (only(a, name)?, only(b, name)?);
        let differs = before != after;
        differs.then(|| Difference { what: name.clone(), before: text(before), after: text(after) })
    });
    differs.collect()
}

/// Every account of either side.
pub fn accounts(
    [a, b]: &[Side<'_>; 2],
    of_a: &ComparedSide,
    of_b: &ComparedSide,
) -> Vec<AccountDelta> {
    let all: BTreeSet<Account> =
        a.runs.iter().chain(&b.runs).flat_map(|run| run.accounts.keys()).copied().collect();
    let sum = |side: &Side<'_>, account| {
        side.runs.iter().filter_map(|run| run.accounts.get(&account)).sum::<u64>()
    };
    let values = |side: &Side<'_>, account| -> Vec<f64> {
        let each = side.runs.iter().zip(&side.units);
        each.map(|(run, units)| *run.accounts.get(&account).unwrap_or(&0) as f64 / *units as f64)
            .collect()
    };
    let ps: Vec<Option<f64>> =
        all.iter().map(|account| tested(&values(a, *account), &values(b, *account))).collect();
    let mut deltas: Vec<AccountDelta> = all
        .into_iter()
        .zip(adjusted(&ps))
        .map(|(account, p_adjusted)| {
            let ns = [sum(a, account), sum(b, account)];
            let per_unit_ns = [of_a.per_unit(ns[0]), of_b.per_unit(ns[1])];
            AccountDelta { account, ns, per_unit_ns, p_adjusted }
        })
        .collect();
    let size = |delta: &AccountDelta| (delta.per_unit_ns[1] - delta.per_unit_ns[0]).abs();
    deltas.sort_by(|a, b| size(b).total_cmp(&size(a)));
    deltas
}

fn tested(a: &[f64], b: &[f64]) -> Option<f64> {
    let enough = a.len().min(b.len()) >= LEAST_RUNS;
    enough.then(|| rank::mann_whitney(a, b)).flatten().map(|test| test.p)
}

/// Adjusted for all that were tested; either all or none are.
fn adjusted(ps: &[Option<f64>]) -> Vec<Option<f64>> {
    match ps.iter().copied().collect::<Option<Vec<f64>>>() {
        Some(ps) => multiple::benjamini_hochberg(&ps).into_iter().map(Some).collect(),
        None => vec![None; ps.len()],
    }
}

/// Every cause that slows a run of either side.
pub fn causes([a, b]: &[Side<'_>; 2]) -> Vec<CauseDelta> {
    let named = a.runs.iter().chain(&b.runs).flat_map(|run| &run.causes);
    let ids: BTreeSet<&String> =
        named.filter(|figure| !figure.minor).map(|figure| &figure.cause).collect();
    let of = |side: &Side<'_>, id: &str| {
        let shares: Vec<f64> = side
            .runs
            .iter()
            .filter_map(|run| Some(run.cause(id).filter(|figure| !figure.minor)?.wall_share))
            .collect();
        // The sum of nothing is -0.0.
        let sum = shares.iter().fold(0.0, |sum, share| sum + share);
        (shares.len(), sum / side.runs.len().max(1) as f64)
    };
    let enough = a.runs.len().min(b.runs.len()) >= LEAST_RUNS;
    let mut causes: Vec<CauseDelta> = ids
        .into_iter()
        .map(|id| {
            let ((with_a, share_a), (with_b, share_b)) = (of(a, id), of(b, id));
            let count = |with, side: &Side<'_>| Count { with, of: side.runs.len() };
            let p = enough.then(|| fisher(count(with_a, a), count(with_b, b)));
            let (runs, share) = ([with_a, with_b], [share_a, share_b]);
            CauseDelta { cause: id.clone(), runs, share, p }
        })
        .collect();
    let most = |cause: &CauseDelta| cause.share[0].max(cause.share[1]);
    causes.sort_by(|a, b| most(b).total_cmp(&most(a)));
    causes
}

/// Every latency that all runs of both sides have.
pub fn latencies([a, b]: &[Side<'_>; 2]) -> Vec<LatencyDelta> {
    let Some(first) = a.runs.first() else { return Vec::new() };
    let of = |side: &Side<'_>, name: &str| -> Option<Vec<LatencyFigure>> {
        side.runs.iter().map(|run| run.latencies.get(name).cloned()).collect()
    };
    let compared = first.latencies.keys().filter_map(|name| {
        let (of_a, of_b) = (of(a, name)?, of(b, name)?);
        Some(latency(name, &of_a, &of_b))
    });
    let mut deltas: Vec<LatencyDelta> = compared.collect();
    let ps: Vec<Option<f64>> = deltas.iter().map(|delta| delta.p).collect();
    for (delta, p) in deltas.iter_mut().zip(adjusted(&ps)) {
        delta.p = p;
    }
    let moved = |delta: &LatencyDelta| {
        delta.shift.iter().map(|shifted| shifted.ratio.ln().abs()).fold(0.0, f64::max)
    };
    deltas.sort_by(|a, b| {
        let p = |delta: &LatencyDelta| delta.p.unwrap_or(1.0);
        p(a).total_cmp(&p(b)).then(moved(b).total_cmp(&moved(a)))
    });
    deltas
}

fn latency(name: &str, a: &[LatencyFigure], b: &[LatencyFigure]) -> LatencyDelta {
    let quantiles = |side: &[LatencyFigure]| -> Vec<Vec<u64>> {
        side.iter().map(|figure| figure.quantiles_ns.clone()).collect()
    };
    let (of_a, of_b) = (quantiles(a), quantiles(b));
    let shift = unpaired(
        &of_a.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        &of_b.iter().map(Vec::as_slice).collect::<Vec<_>>(),
    );
    let width = of_a.iter().chain(&of_b).map(Vec::len).min().unwrap_or(0);
    let mean = |side: &[Vec<u64>], q: usize| {
        let logs = side.iter().map(|run| (run[q].max(1) as f64).ln());
        logs.sum::<f64>() / side.len() as f64
    };
    let points = LatencyFigure::PROBABILITIES.into_iter().take(width).enumerate();
    let points = points.map(|(q, probability)| Shifted {
        probability,
        ratio: (mean(&of_b, q) - mean(&of_a, q)).exp(),
        band: shift.as_ref().map(|shift| [shift.ratios[q].low, shift.ratios[q].high]),
    });
    let count = |side: &[LatencyFigure]| side.iter().map(|figure| figure.count).sum();
    LatencyDelta {
        name: name.to_owned(),
        count: [count(a), count(b)],
        shift: points.collect(),
        p: shift.map(|shift| shift.p),
    }
}
