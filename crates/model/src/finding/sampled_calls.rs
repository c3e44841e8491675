//! System calls of a run that looked at them in short windows only.

use crate::{Estimate, Syscall};

/// What windows say of all calls of the watched threads.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledCalls {
    /// Windows.
    pub windows: u64,
    /// How long they were, together.
    pub windows_ns: u64,
    /// The calls of which most were seen, those first.
    pub calls: Vec<SampledCall>,
}

/// One system call.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledCall {
    /// Which.
    pub call: Syscall,
    /// How often it ended in a window.
    pub n: u64,
    /// Those of them that began before their window, so that they took longer than what was seen.
    pub censored: u64,
    /// How often it ends in a second; `None` with fewer than three windows.
    pub per_second: Option<Estimate>,
    /// Median duration.
    pub p50: CallDuration,
    /// 99th percentile of the duration.
    pub p99: CallDuration,
}

/// A quantile of durations, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallDuration {
    /// Too few calls, or windows.
    TooFew,
    /// More than this, which is the longest that any was followed.
    MoreThan(u64),
    /// An estimate; its upper bound is infinite where it may be beyond the windows.
    Known(Estimate),
}
