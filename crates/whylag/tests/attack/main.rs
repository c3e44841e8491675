//! Attacks by people without privilege, and by bad luck, on what root runs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod command_lines;
mod outputs;
mod store_files;
