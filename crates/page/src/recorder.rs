//! What recording cost, and what it lost.

use std::collections::BTreeSet;

use model::Run;
use model::units::{bytes, count, duration, share_of};
use serde::Serialize;

use crate::timeline::Origin;

/// Counts are read about so often: what was noticed at one look was lost since the look before it.
const READ_EVERY_NS: u64 = 1_000_000_000;

/// The recorder's account of itself.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Recorder {
    /// (what, how much).
    pub costs: Vec<(String, String)>,
    /// (program, runs, time), the most expensive first.
    pub probes: Vec<(String, String, String)>,
    /// What was lost, in time order.
    pub losses: Vec<Loss>,
    /// (part, why), of what was off.
    pub off: Vec<(String, String)>,
}

/// Something that is missing from a time of the run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Loss {
    /// What.
    pub kind: String,
    /// How many.
    pub n: u64,
    /// It lies after this moment, since the start of the run.
    pub from_ns: u64,
    /// And before this one.
    pub to_ns: u64,
}

/// Of a run.
pub fn recorder(run: &Run, origin: Origin) -> Recorder {
    let cost = &run.cost;
    let cpu = share_of(cost.cpu_ns, run.length_ns());
    let costs = [
        ("CPU time of the recorder", format!("{} ({cpu} of one CPU)", duration(cost.cpu_ns))),
        (
            "time in BPF programs",
            format!("{} in {} runs", duration(cost.bpf_ns), count(cost.bpf_runs)),
        ),
        ("events received", format!("{} ({})", count(cost.events), bytes(cost.ring_bytes))),
        ("memory, at most", bytes(cost.peak_rss_bytes)),
        ("until all probes were attached", duration(cost.attach_ns)),
        ("lost", count(run.losses.total())),
    ];
    let probe =
        |probe: &model::ProbeCost| (probe.program.clone(), count(probe.runs), duration(probe.ns));
    let looks: BTreeSet<u64> = run.seconds.iter().map(|second| second.start_ns).collect();
    let loss = |(kind, at_ns, n): &(String, u64, u64)| {
        // Values are counted from one look to the next, so each look begins a second of theirs.
        let earlier = looks.range(..*at_ns).next_back().copied();
        let from_ns = earlier.unwrap_or(u64::MAX).min(at_ns.saturating_sub(READ_EVERY_NS));
        Loss {
            kind: kind.clone(),
            n: *n,
            from_ns: origin.since(from_ns),
            to_ns: origin.since(*at_ns),
        }
    };
    let off = run.capabilities.iter().filter(|capability| !capability.on);
    Recorder {
        costs: costs.map(|(what, much)| (what.to_owned(), much)).into(),
        probes: cost.probes.iter().map(probe).collect(),
        losses: run.losses.seen.iter().map(loss).collect(),
        off: off.map(|part| (part.part.to_string(), part.because.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Histogram, Losses, Metric, MetricSecond};

    #[test]
    fn what_was_noticed_at_a_look_was_lost_since_the_one_before() {
        const S: u64 = READ_EVERY_NS;
        let second = |start_ns| MetricSecond {
            tgid: 0,
            metric: Metric::RunQueueDelay,
            start_ns,
            histogram: Histogram::new(0),
        };
        let seen = |at: u64| ("events".to_owned(), at, 7);
        let run = Run {
            seconds: [10 * S, 13 * S].map(second).to_vec().into(),
            losses: Losses { seen: vec![seen(13 * S), seen(14 * S), seen(9 * S)] },
            ..Run::default()
        };
        let bands: Vec<(u64, u64)> =
            recorder(&run, Origin(S)).losses.iter().map(|one| (one.from_ns, one.to_ns)).collect();
        // The second look came late: all that time may have lost it.
        assert_eq!(bands, [(9 * S, 12 * S), (12 * S, 13 * S), (7 * S, 8 * S)]);
    }
}
