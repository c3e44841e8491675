//! Why a recorded program was slow: named causes with their evidence, ranked by the share of the
//! lost time that each explains.
//!
//! [`explain`] reads a [`model::Run`], never the kernel, and gives a [`model::Explanation`]. The
//! one important type is [`causes::Cause`]: an entry of the catalogue [`causes::ALL`], which looks
//! at a run and either claims lost nanoseconds or says which piece of evidence was not there.
//!
//! What "lost" means is in `lost.rs`: time that a thread did not choose to spend. Waiting for work
//! (poll, accept, a timer it set itself) is idle, and shown, but never explained.
//!
//! Caveats.
//! - A futex does not say what it is for. Only waits that look like a contended lock are lost
//!   time; locks of runtimes that park each thread on a word of its own (Go, the JVM,
//!   parking_lot) are not seen as locks and count as idle.
//! - Shares are of the lost time of all watched threads together. One rare long stall in a long
//!   run is far below the floor in `engine.rs`; the outliers show it, the findings do not.
//! - No finding is a proper answer: "no known cause", and the right one for a healthy program.

mod case;
pub mod causes;
mod chains;
mod confidence;
mod engine;
mod example;
mod ipc_tables;
mod lost;
mod mmap_holders;
mod paths;
#[cfg(test)]
mod testing;
mod text;

pub use engine::explain;
