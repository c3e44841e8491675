//! Two sets of recordings beside each other.

use serde::{Deserialize, Serialize};

use crate::{Account, Difference, RunId};

/// Everything `whylag compare` says of recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunsComparison {
    /// In one sentence.
    pub summary: String,
    /// The baseline.
    pub a: ComparedSide,
    /// The other side.
    pub b: ComparedSide,
    /// What sums are divided by: `run`, or a kind of request or message that all runs have.
    pub unit: String,
    /// Facts that are one value on one side and another one on the other.
    pub differences: Vec<Difference>,
    /// Every account, the largest change per unit first. Their sums are the wall times of the sides.
    pub accounts: Vec<AccountDelta>,
    /// Every cause that a run names, those that take most first.
    pub causes: Vec<CauseDelta>,
    /// Every latency that both sides have, the surest change first.
    pub latencies: Vec<LatencyDelta>,
    /// What makes the comparison weaker.
    pub warnings: Vec<String>,
}

/// One side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// As it was asked for.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunId>,
    /// Time of all watched threads of all runs, ns: the sum of its accounts.
    pub wall_ns: u64,
    /// Units of work in them.
    pub units: u64,
}

impl ComparedSide {
    /// A sum over all runs, per unit of work.
    pub fn per_unit(&self, ns: u64) -> f64 {
        ns as f64 / self.units.max(1) as f64
    }
}

/// An account on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountDelta {
    /// Which.
    pub account: Account,
    /// Sum over all runs of the first side, ns, and of the second.
    pub ns: [u64; 2],
    /// The same per unit of work.
    pub per_unit_ns: [f64; 2],
    /// p of the Mann-Whitney test over runs, adjusted for all accounts (Benjamini and Hochberg);
    /// `None` with fewer than 5 runs on a side.
    pub p_adjusted: Option<f64>,
}

/// A cause on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseDelta {
    /// Id.
    pub cause: String,
    /// In so many runs of the first side, and of the second.
    pub runs: [usize; 2],
    /// Its mean share of the wall time, 0 to 1; runs without it count as 0.
    pub share: [f64; 2],
    /// Fisher's exact test of the two counts, two-sided; `None` with fewer than 5 runs on a side.
    pub p: Option<f64>,
}

/// A latency on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyDelta {
    /// `syscall:read`, `request tcp :6379`.
    pub name: String,
    /// Values of all runs of the first side, and of the second.
    pub count: [u64; 2],
    /// The shift function.
    pub shift: Vec<Shifted>,
    /// p of the largest shift, by exchanging the labels of runs, adjusted for all latencies; `None`
    /// with fewer than 5 runs on a side.
    pub p: Option<f64>,
}

/// By how much one quantile moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shifted {
    /// Which quantile.
    pub probability: f64,
    /// Second side over first, of the geometric means over runs.
    pub ratio: f64,
    /// The 95 % band that holds for all quantiles at once; `None` with fewer than 5 runs on a side.
    pub band: Option<[f64; 2]>,
}
