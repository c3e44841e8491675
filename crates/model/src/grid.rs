//! Many runs beside each other, and what splits the good ones from the bad ones.

use serde::{Deserialize, Serialize};

use crate::RunId;

/// How a run ended, by the rule of whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Neither of the others.
    Clean,
    /// Something went wrong, and the program coped.
    Recovered,
    /// The run failed.
    Lost,
}

/// Runs of one program on one host, in columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Grid {
    /// What they have in common: program, host, kernel, CPUs.
    pub group: String,
    /// The columns, oldest first.
    pub runs: Vec<RunId>,
    /// Of each run.
    pub outcomes: Vec<Outcome>,
    /// Causes, losses, accounts and the facts that are not the same in all runs.
    pub rows: Vec<GridRow>,
    /// What splits the bad runs from the clean ones, the surest first.
    pub splits: Vec<Split>,
    /// How many facts, causes, accounts and latencies were tried for that.
    pub tried: usize,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct GridRow {
    /// `cause lazy-binding`, `loss drops`, `account blocked:futex`, `fact clocksource.current`.
    pub name: String,
    /// Of each run.
    pub cells: Vec<GridCell>,
}

/// What a run has in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum GridCell {
    /// A share of the wall time, 0 to 1.
    Share(f64),
    /// A count.
    Count(u64),
    /// The value of a fact; `None`: it is not set.
    Value(Option<String>),
}

/// Something that the bad runs have and the clean ones do not, or the other way round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Split {
    /// `clocksource.current = hpet`, `cause lazy-binding`, `p99 of syscall:read`.
    pub what: String,
    /// Others that are there in exactly the same runs.
    pub same: Vec<String>,
    /// How the sides differ, for people.
    pub how: String,
    /// Fisher's exact test of what is there or not, the Mann-Whitney test of what has a size; by
    /// itself.
    pub p: f64,
    /// The same, corrected for everything that was tried (Holm): the chance that any of them looks
    /// so in runs that differ in nothing.
    pub p_corrected: f64,
}
