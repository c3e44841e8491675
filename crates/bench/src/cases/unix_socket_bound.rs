//! unix-socket-bound: does a new AF_UNIX socket with a name cost more, the more there are?
//! (story 4)
//!
//! A name is compared with all others of its chain, and there are 256 chains however many names;
//! a socket without a name only joins a chain.

use model::{BenchStep, StoryShape};

use super::{Alone, Benchmark, Ladder, PROCESSES, Population, Prepared, Request, shape, sockets};
use crate::ceiling::Resource;
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "unix-socket-bound",
    measures: "socket(AF_UNIX), bind() to an abstract name and close() while others are bound",
    ladder: Ladder {
        workers: &[1],
        population: Some(Population {
            of: "AF_UNIX sockets with abstract names",
            sizes: &[0, 1_000, 10_000, 50_000],
            uses: Resource::Descriptors,
        }),
        shape: Some(shape),
        ..PROCESSES
    },
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let run = std::process::id();
    let (population, workers) = (request.population, u64::from(request.workers));
    let others = sockets::hold(population, |number| sockets::open_bound(&name(run, number)))?;
    Ok(Box::new(Alone(move |id| {
        // What the closure names lives as long as it does.
        let _others = &others;
        let mut number = population + id as u64;
        Ok(Box::new(move || {
            number += workers;
            sockets::open_bound(&name(run, number)).map(drop)
        }) as Box<dyn Work>)
    })))
}

/// All of one form: the kernel's hash is a sum, which puts names of different forms into different
/// chains. Each run has its own, because they are names of the whole network namespace.
fn name(run: u32, number: u64) -> String {
    format!("whylag-bench.{run:07}.{number:010}")
}

fn shape(steps: &[BenchStep]) -> StoryShape {
    let story =
        "in the reported case 0.24 s for the first 32,768 and 0.585 s for the sixth, 2.4 times";
    shape::grows_with_population(steps, 1.5, story)
}
