//! Why a recorded program was slow: named causes with their evidence, ranked by the share of the
//! lost time that each explains.
//!
//! [`explain`] reads a [`model::Run`], never the kernel, and gives a [`model::Explanation`]. The
//! one important type is [`cause::Cause`]: an entry of the catalogue [`catalogue::ALL`], which looks
//! at a run and either claims lost nanoseconds or says which piece of evidence was not there.
//!
//! Runs of `whylag jitter` have no threads: [`timers`] judges how late their ticks were, with the
//! causes of late ticks.
//!
//! What "lost" means is in `case/lost.rs`: time that a thread did not choose to spend. Waiting for work
//! (poll, accept, a timer it set itself) is idle, and shown, but never explained.
//!
//! Caveats.
//! - A futex does not say what it is for. Waits count as lost where their value or who ends them
//!   shows a lock, also where each thread is parked on a word of its own (the JVM, parking_lot);
//!   locks between goroutines are not seen and count as idle.
//! - Shares are of the lost time, and of the wall time, of all watched threads together. One rare
//!   long stall in a long run is far below the floor in `judge/worth.rs`; the outliers show it, and [`explain_part`]
//!   explains one of them alone, or a window, or a thread (see `part/`).
//! - No finding is a proper answer: "no known cause", and the right one for a healthy program.

#![allow(
    rustdoc::invalid_rust_codeblocks,
    reason = "comments of causes have shell commands in them, for their pages"
)]

mod case;
pub mod catalogue;
pub mod cause;
mod causes;
mod compare;
mod judge;
mod ladder;
mod messages;
mod page;
mod part;
mod patterns;
#[cfg(test)]
mod testing;
mod text;
mod timers;

pub use compare::benchmarks::{NotComparable, compare_benchmarks};
pub use compare::checkups::{Side, compare_checkups};
pub use compare::figures::figures;
pub use compare::grid::{GridRules, GridRun, NoRule, Rule, grids};
pub use compare::proof::{ProofQuestion, measured, prove};
pub use compare::recordings::{
    CannotCompare, Compared, ComparedRun, compare_recordings, is_recording,
};
pub use compare::series::{DISMISSED, SeriesRun, series, trends};

pub use judge::timers::{JudgedTimers, timers};
pub use judge::why_not::{UnknownCause, why_not, why_not_part};
pub use judge::{explain, explain_part};
pub use ladder::judge_ladders;
pub use messages::{break_down, slow_messages};
pub use page::page;
pub use part::question::{Question, QuestionError};
pub use part::run::PartialRun;
pub use timers::conversion::conversion;

use model::{Annotations, Run, SlowMessages};

/// What a run says apart from its causes. `messages` is what [`slow_messages`] found in it.
pub fn annotations(run: &Run, messages: SlowMessages) -> Annotations {
    let coincidences = patterns::coincidence::coincidences(run);
    let on_cpu = judge::on_cpu::on_cpu(run, None);
    let sampled_calls = judge::sampled_calls::sampled_calls(run);
    Annotations { ladders: judge_ladders(run), messages, coincidences, on_cpu, sampled_calls }
}
