//! fork-population: does a new process cost more, the more tasks there are? (story 4)

use model::{BenchStep, StoryShape};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::{Alone, Benchmark, Ladder, PROCESSES, Prepared, Request, shape, tasks};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "fork-population",
    measures: "a process from fork() over its exit to wait(), while threads of others sleep",
    ladder: Ladder {
        workers: &[1],
        population: Some(tasks::LADDER),
        shape: Some(shape),
        ..PROCESSES
    },
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let others = tasks::hold(request.population)?;
    Ok(Box::new(Alone(move |_| {
        // What the closure names lives as long as it does.
        let _others = &others;
        Ok(Box::new(fork_and_wait) as Box<dyn Work>)
    })))
}

fn fork_and_wait() -> Result<(), Errno> {
    // SAFETY: the child calls nothing but _exit, which is allowed whatever other threads hold.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::AGAIN),
        // SAFETY: ends the child without running what its parent registered.
        0 => unsafe { libc::_exit(0) },
        pid => waitpid(Pid::from_raw(pid), WaitOptions::empty()).map(drop),
    }
}

fn shape(steps: &[BenchStep]) -> StoryShape {
    let story =
        "in the reported case processes started and ended slowly with 125,000 and 250,000 threads";
    shape::grows_with_population(steps, 1.5, story)
}
