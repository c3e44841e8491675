//! What repeated events keep to, and what else happens when they come.

use serde::{Deserialize, Serialize};

/// Repeated events that do not come at any time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Rhythm {
    /// Which, in words.
    pub events: String,
    /// How many; those that follow closely count as one.
    pub n: u64,
    /// What they keep to.
    pub kind: RhythmKind,
    /// Probability that events at any time would look so, times the number of tests made.
    pub p: f64,
}

/// What repeated events keep to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum RhythmKind {
    /// A phase of a period of the wall clock.
    WallClock {
        /// Its length.
        period_ns: u64,
        /// Mean time after its beginning.
        phase_ns: u64,
    },
    /// A phase of the period of other events.
    Others {
        /// Which, in words.
        events: String,
        /// Their period.
        period_ns: u64,
        /// Mean time after them.
        phase_ns: u64,
    },
    /// Exactly one in the life of each process, from one exec to the next.
    OncePerProcess,
}

/// Repeated events come while another program runs, more often than chance would have it. That is no
/// cause yet: both may follow from a third.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Coincidence {
    /// Name of the program.
    pub comm: String,
    /// Its processes that ran: one after the other, or at once.
    pub pids: Vec<u32>,
    /// The events, in words.
    pub events: String,
    /// How many; those that follow closely count as one.
    pub n: u64,
    /// Of these, while the program ran.
    pub seen: u64,
    /// How many would be by chance.
    pub expected: f64,
    /// Probability that chance does as well, times the number of tests made.
    pub p: f64,
}
