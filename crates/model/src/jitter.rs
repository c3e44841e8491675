//! What was seen of periodic timers.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// A run of `whylag jitter`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// One per source and interval, in the order they were measured.
    pub series: Vec<JitterSeries>,
}

/// The ticks of one source at one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterSeries {
    /// `timerfd`, `clock_nanosleep` ...
    pub source: String,
    /// Time from one intended tick to the next.
    pub interval_ns: u64,
    /// How late ticks were that came at their time or after it.
    pub late: Histogram,
    /// How early those were that came before their time.
    pub early: Histogram,
}
