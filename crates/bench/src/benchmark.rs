//! What a benchmark is: a case as the harness knows it, and what it is asked for.

use std::fmt;

use model::{BenchStep, StoryShape, WorkerKind};

use crate::ceiling::Resource;
use crate::tidy::Traces;
use crate::{Error, Work};

/// A micro-benchmark.
pub struct Benchmark {
    /// Stable name, as on the command line; its file has it with `_` for `-`.
    pub id: &'static str,
    /// What one operation is, in one line.
    pub measures: &'static str,
    /// What is measured unless the user says otherwise.
    pub ladder: Ladder,
    /// Makes what all workers share, before they start.
    pub prepare: fn(&Request<'_>) -> Result<Box<dyn Prepared>, Error>,
}

impl fmt::Debug for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// The rungs of a case.
pub struct Ladder {
    /// Threads or processes.
    pub kind: WorkerKind,
    /// How many of them.
    pub workers: &'static [u32],
    /// What exists meanwhile, for a case whose cost may depend on that.
    pub population: Option<Population>,
    /// Judges from the steps whether a story's shape is there.
    pub shape: Option<fn(&[BenchStep]) -> StoryShape>,
}

/// 1, 2 and 4 threads, no population, from no story: what most cases are.
pub const THREADS: Ladder =
    Ladder { kind: WorkerKind::Threads, workers: &[1, 2, 4], population: None, shape: None };

/// 1, 2 and 4 processes.
pub const PROCESSES: Ladder = Ladder { kind: WorkerKind::Processes, ..THREADS };

/// The objects that exist while a case is measured.
pub struct Population {
    /// What they are: `open AF_UNIX sockets`.
    pub of: &'static str,
    /// How many of them, by default.
    pub sizes: &'static [u64],
    /// What they use up.
    pub uses: Resource,
}

/// What a case is asked for.
#[derive(Debug)]
pub struct Request<'a> {
    /// The largest number of workers that there will be at a time.
    pub workers: u32,
    /// Threads or processes.
    pub kind: WorkerKind,
    /// How many objects are to exist.
    pub population: u64,
    /// For files and keys.
    pub traces: &'a Traces,
}

/// What all workers of a step share. Dropping it removes it.
pub trait Prepared: Sync {
    /// The work of one worker, made in its own thread or process.
    fn worker(&self, id: usize) -> Result<Box<dyn Work>, Error>;
}

/// A case whose workers share nothing, or only what the function has captured.
pub struct Alone<F>(pub F);

impl<F: Fn(usize) -> Result<Box<dyn Work>, Error> + Sync> Prepared for Alone<F> {
    fn worker(&self, id: usize) -> Result<Box<dyn Work>, Error> {
        self.0(id)
    }
}
