//! What differs between two runs of a benchmark, and between the surroundings of two runs.

pub(crate) mod benchmarks;
pub(crate) mod checkups;
