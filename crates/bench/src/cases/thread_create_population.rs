//! thread-create-population: does a new thread cost more, the more tasks there are? (story 4)

use model::{BenchStep, StoryShape};
use rustix::io::Errno;

use super::{Alone, Benchmark, Ladder, PROCESSES, Prepared, Request, shape, tasks};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "thread-create-population",
    measures: "a thread from its creation to its join, while threads of others sleep",
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
        Ok(Box::new(create_and_join) as Box<dyn Work>)
    })))
}

fn create_and_join() -> Result<(), Errno> {
    let thread = std::thread::Builder::new().spawn(|| {});
    let thread = thread.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
    thread.join().map_err(|_| Errno::CANCELED)
}

fn shape(steps: &[BenchStep]) -> StoryShape {
    let story = "in the reported case threads started and ended slowly while there were 125,000 and 250,000";
    shape::grows_with_population(steps, 1.5, story)
}
