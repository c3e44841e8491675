//! Periodic timers: how late each intended tick came.
//!
//! Ticks come from whylag's own timers ([`Timers`], one file per kind in [`sources`]) or from a
//! program that prints its own ([`Program`]). Both fill a [`Series`] per source and interval. With
//! enough privilege a [`Recording`] in the kernel keeps what happened to the thread between the
//! moments that the latest ticks were intended for and served. What made them late is judged by
//! `explain`, from the stored run.
//!
//! Caveats.
//! - Every intended tick counts, also those that passed while nobody waited: a thread that was
//!   stopped for 500 ms at 1 kHz has 500 late ticks, not one.
//! - A source that takes only whole milliseconds asks for the next whole one, as event loops do.
//! - The time asked for is counted from the tick before, not from the system call, which is some
//!   hundred nanoseconds later.
//! - Nothing of the system is changed; priority and CPU of the measuring thread only on request.

pub mod control;
pub mod drift;
mod error;
mod facts;
mod intervals;
pub mod plan;
mod program;
mod recording;
mod ring;
mod series;
pub mod sources;
mod timers;

pub use error::Error;
pub use program::Program;
pub use recording::{Recording, Started};
pub use series::Series;
pub use timers::Timers;
