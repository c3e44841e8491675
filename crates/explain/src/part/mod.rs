//! A part of a run: an outlier, a window, a thread or a message alone.
//!
//! `question` says what is asked about, `clip` cuts the intervals kept whole to it, `sums` rebuilds
//! the sums from them, `on_cpu` estimates what was between them on a CPU, and `run` makes a smaller
//! run of all that.

pub(crate) mod clip;
pub(crate) mod on_cpu;
pub(crate) mod question;
pub(crate) mod run;
pub(crate) mod sums;

#[cfg(test)]
mod tests;
