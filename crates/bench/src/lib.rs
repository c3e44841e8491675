//! Kernel micro-benchmarks: the distribution of what one operation costs, over ladders of
//! concurrency and of population.
//!
//! The one important type is [`cases::Benchmark`]: an entry of [`cases::ALL`]. [`Session::start`]
//! forks a process that measures cases, rung by rung ([`ladder`]), each rung in rounds ([`round`]),
//! and hands out [`Report`]s.
//!
//! Caveats.
//! - [`Session::start`] forks: the caller has no other thread then.
//! - Every operation is timed on its own, so a case's rate is that of operations with two clock
//!   reads around them; `net_ns` has the clock taken out.
//! - Workers are as many as asked for, however few the CPUs: beyond those, the histogram shows
//!   waiting for a CPU, as it would in a program.
//! - CPU times are those of the workers themselves, not of partners or children that a case has.

mod area;
mod benchmark;
pub mod cases;
pub mod ceiling;
pub mod clock;
mod error;
pub mod helpers;
pub mod ladder;
mod measure;
pub mod recorded;
pub mod round;
mod session;
mod spin;
pub mod stop;
pub mod tidy;

pub use error::Error;
pub use measure::Work;
pub use session::{Report, Session};

#[cfg(test)]
mod tests;
