//! Requests that wait behind each other.

mod calls;
pub(crate) mod event_loop_blocked;
mod held_up;
mod pool_behind_loop;
pub(crate) mod queueing;
mod refused;
pub(crate) mod slow_peer;
pub(crate) mod turn_taking;
pub(crate) mod worker_pool_full;

pub(crate) use self::calls::many_calls;
