//! What the recorder could see, what it lost, and what it cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RecorderPart;

/// A part of the recorder, and whether it worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Which.
    pub part: RecorderPart,
    /// True if it was on all the time, but for a moment at its end.
    pub on: bool,
    /// Why it was off, or became so; empty when on all the time.
    pub because: String,
}

/// What was lost: count by kind, in windows of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// (kind, when it was noticed, how many): it was lost since the look before that one, which is about
    /// a second earlier.
    pub seen: Vec<(String, u64, u64)>,
}

impl Losses {
    /// The kind of values that found no histogram: all were taken.
    pub const VALUES: &str = "values (histograms taken)";

    /// Values that found no histogram.
    pub fn values(&self) -> u64 {
        let values = self.seen.iter().filter(|(kind, _, _)| kind == Losses::VALUES);
        values.fold(0, |sum, (_, _, count)| sum.saturating_add(*count))
    }

    /// Total by kind.
    pub fn by_kind(&self) -> BTreeMap<String, u64> {
        let mut totals = BTreeMap::<String, u64>::new();
        for (kind, _, count) in &self.seen {
            let total = totals.entry(kind.clone()).or_default();
            *total = total.saturating_add(*count);
        }
        totals
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.seen.iter().fold(0, |sum, (_, _, count)| sum.saturating_add(*count))
    }
}

/// What whylag itself cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the recorder process.
    pub cpu_ns: u64,
    /// Time in BPF programs on all CPUs, paid by whoever triggered them: runs times the mean
    /// duration measured in sample windows.
    pub bpf_ns: u64,
    /// Runs of BPF programs.
    pub bpf_runs: u64,
    /// Events received from the kernel.
    pub events: u64,
    /// Bytes received through ring buffers.
    pub ring_bytes: u64,
    /// Peak resident memory of the recorder, bytes.
    pub peak_rss_bytes: u64,
    /// From start of whylag to all probes attached.
    pub attach_ns: u64,
    /// By program, most expensive first.
    pub probes: Vec<ProbeCost>,
    /// Copies of the top of user stacks, 8 KiB each, for code without frame pointers.
    #[serde(default)]
    pub stack_copies: u64,
    /// Stacks of intervals that were kept whole, but not copied: too many in a second.
    #[serde(default)]
    pub stacks_not_copied: u64,
}

/// Cost of one BPF program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCost {
    /// Name of the program.
    pub program: String,
    /// Runs.
    pub runs: u64,
    /// Runs times mean duration.
    pub ns: u64,
}
