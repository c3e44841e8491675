//! What a thread runs, by samples.

use serde::{Deserialize, Serialize};

/// A thread on a CPU, and the functions that it was in when its CPU was sampled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct OnCpu {
    /// Thread.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// How long it was on a CPU, exactly.
    pub on_cpu_ns: u64,
    /// How long it lived in the recording.
    pub wall_ns: u64,
    /// Samples of it.
    pub samples: u64,
    /// What they stand for: CPUs are sampled less often later in a recording. 0 in older answers.
    #[serde(default)]
    pub sampled_ns: u64,
    /// The functions with most of that, those first.
    pub functions: Vec<SampledFunction>,
}

/// A function that samples ended in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct SampledFunction {
    /// The function, then who called it, as most of these samples have it.
    pub path: Vec<String>,
    /// Samples that ended in it; their standard deviation is the square root.
    pub samples: u64,
    /// What these stand for.
    #[serde(default)]
    pub ns: u64,
}
