//! Statistics that hold for latency data: numbers in, verdicts out.
//!
//! The one important type is [`Interval`]: no estimate leaves this room without one, or without
//! the reason why there is none.
//!
//! Caveats.
//! - The sample is the run, or the block of a run, never the single operation: operations next to
//!   each other are not independent, and tests that assume they are find a difference between any
//!   two runs.
//! - Resampling draws from a generator with a fixed seed, so that the same data give the same
//!   verdict.
//! - Pure: no I/O, no clock. Nothing panics; what cannot be computed is `None`.

pub mod ab;
pub mod censored;
pub mod changes;
pub mod coincidence;
pub mod conversion;
mod interval;
pub mod law;
pub mod multiple;
pub mod paired;
pub mod pairs;
pub mod periodicity;
pub mod proportion;
pub mod quantile;
pub mod rank;
pub mod resample;
pub mod shift;
pub mod usl;

pub use interval::Interval;
