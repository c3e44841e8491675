//! How one cause of the catalogue stands in a run.

use serde::{Deserialize, Serialize};

use super::explanation::Scope;
use crate::{Capability, RunId};

/// How a cause of the catalogue stands in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhyNot {
    /// The run.
    pub run: RunId,
    /// The part of it that was asked about; `None`: all of it.
    pub scope: Option<Scope>,
    /// Id of the cause.
    pub cause: String,
    /// The cause in one line.
    pub title: String,
    /// Whether it is a finding, and if not, why.
    pub standing: Standing,
    /// Parts of the recorder that its evidence needs and that were off.
    pub off: Vec<Capability>,
}

/// Whether a cause is a finding, and if not, why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Standing {
    /// It is.
    Finding {
        /// Its place, from 1.
        rank: u64,
        /// How many findings there are.
        findings: u64,
        /// Part of the lost time that it explains, 0 to 1.
        share: f64,
        /// The same in nanoseconds.
        lost_ns: u64,
        /// 0 to 1.
        confidence: f64,
    },
    /// Its evidence is there, but it explains too little.
    BelowFloor {
        /// What it claims.
        claimed_ns: u64,
        /// What of this no other cause explains.
        left_ns: u64,
        /// What that is below.
        because: String,
    },
    /// A piece of its evidence was not there.
    Absent {
        /// Which, and what was seen instead.
        missing: String,
    },
    /// Nothing that could show it was measured in this run.
    NotLookedFor {
        /// What was measured instead, and what measures it.
        because: String,
    },
}
