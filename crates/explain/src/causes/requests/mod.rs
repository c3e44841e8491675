//! Requests that wait behind each other.

pub(crate) mod queueing;
pub(crate) mod slow_peer;
