//! Builds runs from the evidence that a test is about.

pub mod benchmarks;
mod evidence;
pub mod made_up;
pub mod requests;
mod run_builder;
pub mod without;

pub use self::evidence::{
    FUTEX, SECOND, USER, concurrent_call, drops, held_send, hold, interval, presence, queue,
    runner, timer_series, wait,
};
pub use self::run_builder::{RunBuilder, user_stack};
