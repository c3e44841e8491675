//! The cases: one file each, listed in [`ALL`].

mod empty;
mod getppid;

use crate::Error;
use crate::worker::Work;

/// A micro-benchmark.
pub struct Case {
    /// Stable name, as on the command line.
    pub id: &'static str,
    /// What it measures, in one line.
    pub measures: &'static str,
    /// Makes what all workers share, before they start.
    pub prepare: fn(&Request) -> Result<Box<dyn Prepared>, Error>,
}

/// What a case is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Workers of the step.
    pub workers: usize,
}

/// What all workers of a step share. Dropping it removes it.
pub trait Prepared: Sync {
    /// The work of one worker, made in its own thread or process.
    fn worker(&self, id: usize) -> Result<Box<dyn Work>, Error>;
}

/// A case whose workers share nothing: the function makes each one's work.
struct Alone<F>(F);

impl<F: Fn(usize) -> Result<Box<dyn Work>, Error> + Sync> Prepared for Alone<F> {
    fn worker(&self, id: usize) -> Result<Box<dyn Work>, Error> {
        self.0(id)
    }
}

/// Every case.
pub const ALL: &[&Case] = &[&empty::CASE, &getppid::CASE];
