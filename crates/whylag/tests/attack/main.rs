//! What users without privilege try against root's recorder, and what is left of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod attacker;
mod processes;
mod traces;
