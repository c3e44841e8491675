//! Periodic timers: how late each intended tick came, and the law that the lateness follows.
//!
//! Ticks come from whylag's own timers ([`Timers`], one file per kind in [`sources`]) or from a
//! program that prints its own ([`Program`]). Both fill a [`Series`] per source and interval;
//! [`judge::judge`] makes a [`model::Jitter`] of them: laws, pairs, beats, and the causes that
//! have a name.
//! With enough privilege a [`Recording`] in the kernel says of the latest ticks where the time went
//! between the intended moment and the served one.
//!
//! Caveats.
//! - Every intended tick counts, also those that passed while nobody waited: a thread that was
//!   stopped for 500 ms at 1 kHz has 500 late ticks, not one.
//! - A source that takes only whole milliseconds asks for the next whole one, as event loops do.
//! - The time asked for is counted from the tick before, not from the system call, which is some
//!   hundred nanoseconds later.
//! - Nothing of the system is changed; priority and CPU of the measuring thread only on request.

mod attribute;
pub mod control;
pub mod conversion;
pub mod drift;
mod error;
pub mod facts;
pub mod judge;
pub mod plan;
mod program;
mod recording;
mod ring;
mod series;
pub mod sources;
mod timers;
mod words;

pub use error::Error;
pub use program::Program;
pub use recording::{Recording, Started};
pub use series::Series;
pub use timers::Timers;
