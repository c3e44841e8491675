//! Kernel micro-benchmarks: the distribution of what one operation costs, over ladders of
//! concurrency.
//!
//! The one important type is [`cases::Case`]: an entry of [`cases::ALL`]. [`step::run`] measures it
//! with so many workers and gives a [`step::Step`]: counts, CPU times, the histogram of single
//! operations, and the cost of one operation without the clock's.
//!
//! Caveats.
//! - Steps with processes fork: the caller has no other thread then.
//! - Every operation is timed on its own, so a case's rate is that of operations with two clock
//!   reads around them; `net_ns` has the clock taken out.
//! - Workers are as many as asked for, however few the CPUs: beyond those, the histogram shows
//!   waiting for a CPU, as it would in a program.

mod area;
pub mod cases;
pub mod clock;
mod error;
mod spin;
pub mod step;
mod worker;

pub use error::Error;
pub use worker::Work;

#[cfg(test)]
mod tests;
