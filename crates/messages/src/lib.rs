//! What traced programs report of their messages, turned into model types while they run.
//!
//! [`Follower`] follows one trace file: each look gives the slow messages that are new, some of the
//! others, and once in a while what the histograms counted. [`Watched`] does so for all processes
//! of a recording, and finds their traces when they begin to trace; [`Traced`] puts that into the
//! recorder's batches, with the intervals of the threads meanwhile. [`harvest`] takes all that a
//! program left behind. [`guarded`] opens traces of processes that may not answer.
//!
//! Caveats. The rings of a trace are short: between two looks a thread may end more messages than
//! fit. Those are counted as missed; histograms and counts still have them. Nothing of a trace is
//! trusted: what does not pass the reader's checks ends the following, with the reason.

mod ahead;
mod budget;
mod calls;
mod calls_at_once;
mod convert;
mod follower;
pub mod guarded;
mod harvest;
mod recording;
mod requests;
mod room;
mod sample;
mod watched;

pub use convert::language;
pub use follower::{Follower, Look};
pub use harvest::harvest;
pub use recording::Traced;
pub use watched::Watched;
