//! unix-socket: does a new AF_UNIX socket cost more, the more there are? (story 4)

use model::{BenchStep, StoryShape};

use super::{Alone, Benchmark, Ladder, PROCESSES, Population, Prepared, Request, shape, sockets};
use crate::ceiling::Resource;
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "unix-socket",
    measures: "socket(AF_UNIX) and close() while other AF_UNIX sockets are open",
    ladder: Ladder {
        workers: &[1],
        population: Some(Population {
            of: "open AF_UNIX sockets",
            sizes: &[0, 1_000, 10_000, 50_000],
            uses: Resource::Descriptors,
        }),
        shape: Some(shape),
        ..PROCESSES
    },
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let others = sockets::hold(request.population, |_| sockets::open())?;
    Ok(Box::new(Alone(move |_| {
        // What the closure names lives as long as it does.
        let _others = &others;
        Ok(Box::new(|| sockets::open().map(drop)) as Box<dyn Work>)
    })))
}

fn shape(steps: &[BenchStep]) -> StoryShape {
    let story =
        "in the reported case 0.24 s for the first 32,768 and 0.585 s for the sixth, 2.4 times";
    shape::grows_with_population(steps, 1.5, story)
}
