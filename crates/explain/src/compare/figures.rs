//! A run in figures, for those who compare many.

use std::collections::BTreeMap;

use model::units::duration;
use model::{
    CauseFigure, Explanation, FlowKind, Histogram, LatencyFigure, MessageMetric, Metric, Run,
    RunFigures,
};
use stats::quantile;

use crate::judge::divided::divided;

/// Latencies with fewer values say nothing of their distribution.
const LEAST_VALUES: u64 = 6;

/// What a run and its explanation say in figures.
pub fn figures(run: &Run, explanation: &Explanation) -> RunFigures {
    let causes = explanation.findings.iter().map(|finding| CauseFigure {
        cause: finding.cause.clone(),
        lost_ns: finding.lost_ns,
        wall_share: finding.wall_share,
        confidence: finding.confidence,
        minor: finding.minor,
    });
    let watched = run.accounts().sum_of(model::Account::is_running);
    let busy = run.sums.cpus.iter().map(|cpu| cpu.busy_ns).fold(0, u64::saturating_add);
    let recorder_cpu_ns = run.cost.cpu_ns.saturating_add(run.cost.bpf_ns);
    RunFigures {
        length_ns: run.length_ns(),
        wall_ns: run.wall_ns(),
        exit_status: run.end.as_ref().and_then(|end| end.exit_status),
        // Or runs of unequal length, or of unequal load, would differ by how long calls were recorded.
        accounts: divided(run).accounts().iter().collect(),
        causes: causes.collect(),
        latencies: latencies(run),
        own: None,
        ticks_off_ns: ticks_off_ns(run),
        losses: run.losses.by_kind(),
        facts: run.facts.iter().map(|fact| (fact.name.clone(), fact.value.clone())).collect(),
        others_cpu_ns: busy.saturating_sub(watched).saturating_sub(run.cost.cpu_ns),
        stolen_ns: run.sums.cpus.iter().map(|cpu| cpu.stolen_ns).fold(0, u64::saturating_add),
        recorder_cpu_ns,
    }
}

/// System calls, scheduling and the like of all watched processes; messages by their flow; late ticks
/// by their source and interval.
fn latencies(run: &Run) -> BTreeMap<String, LatencyFigure> {
    let mut all = BTreeMap::<String, Histogram>::new();
    let mut add = |name: String, histogram: &Histogram| {
        let sum = all.entry(name).or_insert_with(|| Histogram::new(histogram.precision()));
        sum.merge(histogram);
    };
    for second in run.seconds.iter().filter(|second| is_of_whole_run(run, &second.metric)) {
        add(second.metric.to_string(), &second.histogram);
    }
    for second in &run.messages.seconds {
        let program = run.messages.programs.iter().find(|p| p.program == second.program);
        let flow = program.and_then(|p| p.flows.iter().find(|flow| flow.flow == second.flow));
        if let (Some(flow), MessageMetric::Total) = (flow, second.metric) {
            let noun = if flow.kind == FlowKind::Traced { "message" } else { "request" };
            add(format!("{noun} {}", flow.name), &second.histogram);
        }
    }
    for series in run.jitter.iter().flat_map(|jitter| &jitter.series) {
        let every = duration(series.interval_ns);
        add(format!("late ticks {} every {every}", series.source), &series.late);
    }
    let figures = all.into_iter().filter_map(|(name, values)| Some((name, figure(&values)?)));
    figures.collect()
}

/// Not of windows alone, nor of the first seconds, after which the part was given up.
fn is_of_whole_run(run: &Run, metric: &Metric) -> bool {
    !metric.is_of_windows() && run.given_up(metric).is_none()
}

/// Of all series together, early ticks as well as late ones.
fn ticks_off_ns(run: &Run) -> Option<f64> {
    let mut all = (0u64, 0.0);
    for series in run.jitter.iter().flat_map(|jitter| &jitter.series) {
        for one in [&series.late, &series.early] {
            all = (all.0.saturating_add(one.count()), all.1 + one.sum() as f64);
        }
    }
    (all.0 > 0).then(|| all.1 / all.0 as f64)
}

fn figure(values: &Histogram) -> Option<LatencyFigure> {
    let count = values.count();
    let carried = LatencyFigure::PROBABILITIES.into_iter().filter(|q| quantile::carries(count, *q));
    let quantiles_ns = carried.filter_map(|q| values.quantile(q)).collect();
    (count >= LEAST_VALUES).then_some(LatencyFigure { count, quantiles_ns })
}
