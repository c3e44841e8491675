//! What explain says of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Account, RunId};

/// A link of a chain, from the symptom to its trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// `symptom`, `mechanism` or `trigger`.
    pub role: String,
    /// What it is, with its numbers.
    pub text: String,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was seen, with units and n.
    pub text: String,
    /// Where it comes from: the probe, counter or file.
    pub source: String,
}

/// A look-alike that was considered and excluded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledOut {
    /// Id of the other cause.
    pub cause: String,
    /// The datum that excludes it.
    pub because: String,
}

/// A named cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Id of the cause, as in `causes/`.
    pub cause: String,
    /// One line for people.
    pub title: String,
    /// Part of the lost time that it explains, 0 to 1.
    pub share: f64,
    /// The same in nanoseconds.
    pub lost_ns: u64,
    /// 0 to 1.
    pub confidence: f64,
    /// Why confidence is below 1; empty if it is not.
    pub doubts: Vec<String>,
    /// Symptom first.
    pub chain: Vec<Link>,
    /// Evidence.
    pub evidence: Vec<Evidence>,
    /// Look-alikes.
    pub ruled_out: Vec<RuledOut>,
    /// What to do.
    pub fix: String,
    /// A command that reproduces the cause.
    pub reproduce: String,
    /// A command that shows whether the fix works.
    pub verify: String,
}

/// Everything `whylag explain` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The run.
    pub run: RunId,
    /// Wall time of all watched threads.
    pub wall_ns: u64,
    /// Wall time that is in no account.
    pub unaccounted_ns: u64,
    /// Wall time that the threads did not choose to spend.
    pub lost_ns: u64,
    /// Wall time waiting for work.
    pub idle_ns: u64,
    /// (account, ns, share of the wall time), largest first.
    pub accounts: Vec<(Account, u64, f64)>,
    /// Largest share first; empty: no known cause.
    pub findings: Vec<Finding>,
    /// Lost time that no finding explains, by account, largest first.
    pub unexplained: Vec<(Account, u64)>,
    /// Count by kind.
    pub losses: BTreeMap<String, u64>,
}
