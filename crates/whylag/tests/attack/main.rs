//! Attacks by people without privilege, and by bad luck, on what root runs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod attacker;
mod command_lines;
mod endings;
mod kernel_log;
mod outputs;
mod page;
mod privileges;
mod processes;
mod spool;
mod store_files;
mod storm;
mod traces;
mod withheld;
