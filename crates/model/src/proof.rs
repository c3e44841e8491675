//! Whether a change made a program faster, and whether its cause is gone.

use serde::{Deserialize, Serialize};
use stats::Interval;

use crate::{Account, RunFigures, RunId};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialSide {
    /// Without the change.
    Before,
    /// With it.
    After,
}

impl TrialSide {
    /// As in labels and JSON.
    pub fn name(self) -> &'static str {
        match self {
            TrialSide::Before => "before",
            TrialSide::After => "after",
        }
    }
}

/// One execution of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which side.
    pub side: TrialSide,
    /// Number of its pair, from 0.
    pub pair: usize,
    /// Its run; `None`: it was not recorded.
    pub run: Option<RunId>,
    /// From its start to its end.
    pub wall_ns: u64,
    /// The figure that the program printed, where one was asked for.
    pub metric: Option<f64>,
    /// What was recorded.
    pub figures: Option<RunFigures>,
}

/// Which values of a figure are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times, costs.
    #[default]
    Lower,
    /// Rates.
    Higher,
}

/// What pairs say of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `wall time`, or the pattern that finds the program's own figure.
    pub what: String,
    /// Which values are better.
    pub better: Better,
    /// Median before.
    pub before: f64,
    /// Median after.
    pub after: f64,
    /// After over before, from pairs; `None` with too few.
    pub ratio: Option<Interval>,
    /// Two-sided p of the exact signed-rank test over pairs.
    pub p: Option<f64>,
    /// Pairs.
    pub pairs: usize,
    /// What it amounts to.
    pub verdict: ProofVerdict,
    /// What is missing where the verdict is insufficient; empty otherwise.
    pub missing: String,
}

/// Whether a figure became better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofVerdict {
    /// Better.
    Better,
    /// Worse.
    Worse,
    /// The whole interval is within this part of no change: 0.02 is 2 %.
    SameWithin(f64),
    /// Neither is shown.
    #[default]
    Insufficient,
}

/// Whether a cause is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseVerdict {
    /// In none of the runs after, and chance does not explain that.
    Gone,
    /// In fewer runs after, and chance does not explain that.
    Rarer,
    /// In as many runs, but it takes less time.
    Smaller,
    /// Still there.
    Stays,
    /// It came with the change.
    Came,
    /// Not enough runs had it to say.
    Insufficient,
}

/// A cause on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseProof {
    /// Id.
    pub cause: String,
    /// Runs in which it was a finding, of how many.
    pub before: (usize, usize),
    /// The same after.
    pub after: (usize, usize),
    /// Fisher's exact test of the two, two-sided.
    pub p: f64,
    /// Runs after would have it at most at this rate, with 95 % confidence.
    pub at_most: f64,
    /// Its mean share of the wall time before, 0 to 1; runs without it count as 0.
    pub share_before: f64,
    /// The same after.
    pub share_after: f64,
    /// Its time after over before in pairs that both have it.
    pub ratio: Option<Interval>,
    /// What it amounts to.
    pub verdict: CauseVerdict,
}

/// An account that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountChange {
    /// Which.
    pub account: Account,
    /// Mean of a run before, ns.
    pub before_ns: f64,
    /// Mean of a run after, ns.
    pub after_ns: f64,
    /// p of the signed-rank test over pairs, adjusted for all accounts (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
}

/// A latency that both sides have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyChange {
    /// `syscall:read`, `request tcp :6379`.
    pub name: String,
    /// Values of all runs before, and after.
    pub count: [u64; 2],
    /// The shift function: at each probability, after over before in the median pair, with bands
    /// that hold for all of them at once.
    pub shift: Vec<(f64, Interval)>,
    /// p of the largest shift, by turning the signs of pairs.
    pub p: f64,
}

/// Something that differs between the sides, and was not meant to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// `clocksource.current`, `other programs' CPU time`.
    pub what: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

/// Everything `whylag prove` says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// In one sentence.
    pub summary: String,
    /// What was changed, in words.
    pub change: String,
    /// Seed of the order inside pairs; `None` of stored runs.
    pub seed: Option<u64>,
    /// The figure that the verdict is about.
    pub measured: Measured,
    /// The same of the pairs that were not recorded; `None` without any.
    pub unrecorded: Option<Measured>,
    /// What recording costs each side: recorded over not recorded, medians.
    pub recording: Option<[f64; 2]>,
    /// The cause that the proof is about; `None`: no run had one.
    pub cause: Option<CauseProof>,
    /// The others.
    pub other_causes: Vec<CauseProof>,
    /// Accounts that changed, the largest change first.
    pub accounts: Vec<AccountChange>,
    /// Latencies that changed, the surest first.
    pub latencies: Vec<LatencyChange>,
    /// What else differed.
    pub differences: Vec<Difference>,
    /// What makes the proof weaker.
    pub warnings: Vec<String>,
    /// Every execution, in the order in which they were made.
    pub trials: Vec<Trial>,
}
