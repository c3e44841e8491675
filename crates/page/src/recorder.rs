//! What recording cost, and what it lost.

use model::Run;
use model::units::{bytes, count, duration, share_of};
use serde::Serialize;

use crate::timeline::Origin;

/// Counts are read about so often: what was lost is known to lie in such a time.
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
    let loss = |(kind, at_ns, n): &(String, u64, u64)| {
        let from_ns = origin.since(*at_ns);
        let to_ns = from_ns.saturating_add(READ_EVERY_NS).min(run.length_ns().max(from_ns));
        Loss { kind: kind.clone(), n: *n, from_ns, to_ns }
    };
    let off = run.capabilities.iter().filter(|capability| !capability.on);
    Recorder {
        costs: costs.map(|(what, much)| (what.to_owned(), much)).into(),
        probes: cost.probes.iter().map(probe).collect(),
        losses: run.losses.seen.iter().map(loss).collect(),
        off: off.map(|part| (part.part.to_string(), part.because.clone())).collect(),
    }
}
