//! A run with the sums that several causes need.
//!
//! [`Case`] is what a cause examines. `lost` says which time counts as lost, `scales`,
//! `kernel_paths`, `wait_chains` and `behind_holders` where it went; the rest are sums that several
//! causes share.

pub(crate) mod answers;
pub(crate) mod barriers;
pub(crate) mod behind_holders;
pub(crate) mod beyond;
pub(crate) mod call_counts;
pub(crate) mod chain_ends;
mod children;
pub(crate) mod cut_waits;
mod fetching;
pub(crate) mod functions;
mod handovers;
pub(crate) mod held_sends;
pub(crate) mod in_words;
pub(crate) mod kernel_paths;
pub(crate) mod lock_word;
pub(crate) mod looks;
mod loop_sleeps;
pub(crate) mod lost;
mod lost_part;
pub(crate) mod mmap_holders;
mod named_locks;
mod parking;
pub(crate) mod purposes;
pub(crate) mod requests;
mod rings;
pub(crate) mod run_queue;
pub(crate) mod safepoints;
pub(crate) mod scales;
pub(crate) mod silent_peers;
pub(crate) mod slowest;
pub(crate) mod spans;
pub(crate) mod spinning;
pub(crate) mod stops;
pub(crate) mod stuck;
mod sums;
pub(crate) mod turns;
pub(crate) mod wait_chains;

pub(crate) use sums::{Case, Cpus, Waits, sum_of};
