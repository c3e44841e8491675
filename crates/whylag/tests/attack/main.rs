//! What somebody or something does to a recorder that it has to bear.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod endings;
mod privileges;
mod spool;
