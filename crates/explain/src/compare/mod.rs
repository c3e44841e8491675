//! What differs between two runs of a benchmark, between two sets of recordings, between the
//! surroundings of two runs, and between a program before and after a change.

pub(crate) mod benchmarks;
pub(crate) mod checkups;
pub(crate) mod figures;
pub(crate) mod grid;
pub(crate) mod proof;
pub(crate) mod recordings;
pub(crate) mod series;
