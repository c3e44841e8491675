//! Patterns in time: events that come again and again, their rhythm, and what else ran then.

pub(crate) mod coincidence;
pub(crate) mod recurring;
pub(crate) mod rhythm;
