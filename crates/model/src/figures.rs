//! What one run says in figures: little enough to keep for each of thousands of runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Account, Better};

/// A run in figures. Whoever compares many runs (proofs, grids, series) reads these instead of the
/// runs themselves: about 20 KB each instead of megabytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFigures {
    /// From its start to its end.
    pub length_ns: u64,
    /// Wall time of all watched threads.
    pub wall_ns: u64,
    /// Exit status of the command.
    pub exit_status: Option<i32>,
    /// Time of all watched threads by account.
    pub accounts: BTreeMap<Account, u64>,
    /// Findings, the leading one first.
    pub causes: Vec<CauseFigure>,
    /// Latencies by name: `syscall:read`, `request tcp :6379`, `late ticks`.
    pub latencies: BTreeMap<String, LatencyFigure>,
    /// The program's own figure, where it was executed for a proof that is about one.
    pub own: Option<OwnFigure>,
    /// Mean distance of ticks from their time, where timers were measured.
    pub ticks_off_ns: Option<f64>,
    /// Events lost, by kind.
    pub losses: BTreeMap<String, u64>,
    /// Facts of the host and the program.
    pub facts: BTreeMap<String, String>,
    /// CPU time of programs that were not watched, the recorder's left out.
    pub others_cpu_ns: u64,
    /// Time that the hypervisor took from the CPUs.
    pub stolen_ns: u64,
    /// CPU time of the recorder, its BPF programs included.
    pub recorder_cpu_ns: u64,
}

impl RunFigures {
    /// The finding of this cause.
    pub fn cause(&self, cause: &str) -> Option<&CauseFigure> {
        self.causes.iter().find(|figure| figure.cause == cause)
    }
}

/// What a program printed of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnFigure {
    /// The pattern that found it in the output.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Which values are better.
    pub better: Better,
}

/// A finding in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseFigure {
    /// Id of the cause.
    pub cause: String,
    /// Lost time that it explains.
    pub lost_ns: u64,
    /// The same as a part of the wall time of all watched threads, 0 to 1.
    pub wall_share: f64,
    /// 0 to 1.
    pub confidence: f64,
    /// Below what slows a program.
    pub minor: bool,
}

/// A distribution of latencies in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyFigure {
    /// Values.
    pub count: u64,
    /// Quantiles at [`LatencyFigure::PROBABILITIES`], ns; those that so few values do not carry are
    /// left out at the end.
    pub quantiles_ns: Vec<u64>,
}

impl LatencyFigure {
    /// Where quantiles are taken: densest in the tail, which is what users meet.
    pub const PROBABILITIES: [f64; 24] = [
        0.01, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70,
        0.75, 0.80, 0.85, 0.90, 0.95, 0.98, 0.99, 0.995, 0.999,
    ];
    /// The place of the median in them.
    pub const P50: usize = 10;
    /// The place of the 99th percentile in them.
    pub const P99: usize = 21;
}
