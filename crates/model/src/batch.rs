//! What a source hands to the store about once a second.

use serde::{Deserialize, Serialize};

use crate::{
    Bench, Capability, Cost, Event, Fact, Jitter, Messages, MetricSecond, Outlier, Presence,
    Process, Sockets, Stack, Sums, ThreadAccounts,
};

/// One step of a recording, stored as a whole or not at all.
///
/// Additions: `seconds`, `outliers`, `events`, `stacks`, `facts`, `losses`, `sockets`,
/// `presences`. Latest values that
/// replace what was stored under the same key: `threads` (tid, first_ns), `processes` (tgid),
/// `sums` (each by its key), `capabilities` (part), `cost`,
/// `bench`, `jitter`. Of `messages`, `programs` (program) and `fast` (program, flow, sample) are
/// replaced, `seconds` and `slow` are added.
///
/// Run files consist of batches. What an older whylag did not know is then empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Batch {
    /// Data is complete up to here.
    pub heartbeat_ns: u64,
    /// Added.
    pub facts: Vec<Fact>,
    /// Replaced by part.
    pub capabilities: Vec<Capability>,
    /// Replaced by tgid.
    pub processes: Vec<Process>,
    /// Replaced by (tid, first_ns).
    pub threads: Vec<ThreadAccounts>,
    /// Added.
    pub seconds: Vec<MetricSecond>,
    /// Added. Those below the threshold of the run are kept for the sake of a message only.
    pub outliers: Vec<Outlier>,
    /// Added.
    pub events: Vec<Event>,
    /// Added; a stack that is there already is replaced.
    pub stacks: Vec<Stack>,
    /// Replaced by their keys.
    #[serde(flatten)]
    pub sums: Sums,
    /// Added: (kind, start of the interval, count).
    pub losses: Vec<(String, u64, u64)>,
    /// Replaced.
    pub cost: Option<Cost>,
    /// Replaced.
    pub bench: Option<Bench>,
    /// Replaced.
    pub jitter: Option<Jitter>,
    /// `slow_count` is the store's to count.
    pub messages: Messages,
    /// Added.
    pub sockets: Sockets,
    /// Added.
    pub presences: Vec<Presence>,
}
