//! One file per verb; each only wires rooms together.

pub mod bench;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod forget;
pub mod import;
pub mod jitter;
pub mod prove;
pub mod record;
pub mod report;
pub mod runs;
pub mod series;
pub mod serve;
pub mod show;
pub mod trace;
