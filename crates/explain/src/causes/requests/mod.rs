//! Requests that wait behind each other.

pub(crate) mod queueing;
