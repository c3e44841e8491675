//! What was seen of periodic timers.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// Precision of the histograms of lateness: buckets 0.78 % wide.
pub const PRECISION_JITTER: u8 = 7;

/// A run of `whylag jitter`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// What was judged instead of whylag's own timers.
    pub program: Option<JitterProgram>,
    /// What was changed on request, such as `SCHED_FIFO 80`; nothing else was.
    pub changed: Vec<String>,
    /// Ticks later than this are kept as late.
    pub over_ns: u64,
    /// One per source and interval, in the order they were measured.
    pub series: Vec<JitterSeries>,
    /// How lateness depends on the interval, per source.
    pub laws: Vec<JitterLaw>,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW, ppm: positive if the clock runs fast.
    pub drift_ppm: Option<Estimate>,
    /// What else is to be told: warnings, and what could not be judged.
    pub notes: Vec<String>,
}

/// A program that printed its own ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterProgram {
    /// Process id.
    pub pid: u32,
    /// Lines that were no tick.
    pub other_lines: u64,
    /// Its threads, as seen while it lived.
    pub threads: Vec<JitterThread>,
}

/// A thread that waits for timers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterThread {
    /// Thread id.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// Timer slack, ns; `None` if it cannot be read.
    pub slack_ns: Option<u64>,
    /// `SCHED_OTHER`, `SCHED_FIFO` ...
    pub policy: String,
    /// Real-time priority, 0 if none.
    pub priority: u32,
}

/// The ticks of one source at one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterSeries {
    /// `timerfd`, `clock_nanosleep` ..., `program`.
    pub source: String,
    /// Time from one intended tick to the next.
    pub interval_ns: u64,
    /// The thread that measured; `None` for a program that printed its ticks.
    pub thread: Option<JitterThread>,
    /// When it began, CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, for phases in the second of the wall clock.
    pub to_wall_ns: i64,
    /// Ticks that should have come in its time.
    pub intended: u64,
    /// Of these, how many were served together with later ones because the thread was not there:
    /// each counts with its own lateness.
    pub missed: u64,
    /// How late ticks were that came at their time or after it.
    pub late: Histogram,
    /// How early those were that came before their time.
    pub early: Histogram,
    /// The first ticks, one by one.
    pub ticks: Vec<Tick>,
    /// The latest ticks, latest first.
    pub worst: Vec<LateTick>,
    /// Whether ticks later than `over_ns` come at a beat.
    pub periods: Vec<Period>,
    /// Early ticks that a late one follows, with net zero; `None`: there are none.
    pub pairs: Option<EarlyLatePairs>,
}

/// One tick: intended time, how late it was (negative: early), and how long the thread had slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick(
    /// Intended time, CLOCK_MONOTONIC.
    pub u64,
    /// Lateness, ns.
    pub i64,
    /// From the moment it had asked for this sleep to the intended time, ns.
    pub u64,
);

/// A late tick, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateTick {
    /// Its number in the series, from 0.
    pub number: u64,
    /// When it should have come, CLOCK_MONOTONIC.
    pub intended_ns: u64,
    /// Lateness, ns.
    pub late_ns: i64,
    /// Parts of the way from the intended time to the moment it was served, in order, as recorded
    /// in the kernel: what, and how long. Empty if nothing was recorded.
    pub legs: Vec<Leg>,
    /// What made it late, in words.
    pub because: Vec<String>,
}

/// A part of the way from the intended time to the moment a tick was served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// What happened: `timer programmed late`, `expired but interrupts off`, `waiting for the CPU`.
    pub what: String,
    /// How long.
    pub ns: i64,
}

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// How lateness depends on the interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterLaw {
    /// The source.
    pub source: String,
    /// The model that describes it best: `constant`, `proportional`, `saturating`, `stepped 1 ms`,
    /// `stepped jiffy`; `None` if nothing can be said.
    pub best: Option<String>,
    /// In one sentence, with figures; or why there is none.
    pub text: String,
    /// All models that were fitted, the best first.
    pub models: Vec<LawModel>,
}

/// A model of lateness that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawModel {
    /// `constant` ...
    pub name: String,
    /// The formula with its figures and units.
    pub formula: String,
    /// (name and unit, estimate).
    pub figures: Vec<(String, Estimate)>,
    /// What is left of the lateness: root mean square of the residuals, ns.
    pub residual_ns: f64,
    /// Akaike's criterion above that of the best, corrected for few points; 0: the best.
    pub aicc_above: f64,
    /// Why it is not the one; empty for the best.
    pub because: String,
}

/// A beat in the late ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// Length.
    pub period_ns: u64,
    /// Where in the period they come, ns; for 1 s counted from the second of the wall clock.
    pub phase_ns: u64,
    /// How concentrated they are there, 0 to 1: the mean resultant length.
    pub concentration: f64,
    /// Late ticks.
    pub n: u64,
    /// p of Rayleigh's test, times the number of periods that were tried.
    pub p: f64,
}

/// Ticks that come early and are followed by one as much too late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlyLatePairs {
    /// How many pairs.
    pub pairs: u64,
    /// Mean of their early ticks, ns below zero.
    pub early_ns: f64,
    /// Mean of the late ticks after them, ns.
    pub late_ns: f64,
    /// Mean sum of a pair, ns.
    pub net_ns: f64,
    /// Mean time between pairs, ns.
    pub every_ns: f64,
}
