//! proc-scan: does ps take longer, the more tasks there are? (story 4)

use model::{BenchStep, StoryShape};

use super::{Alone, Benchmark, Ladder, PROCESSES, Prepared, Request, shape, tasks};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "proc-scan",
    measures: "one scan of /proc as by ps: all processes, their owner, stat and status",
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
        let mut buffer = vec![0; 16 << 10];
        Ok(Box::new(move || tasks::scan(&mut buffer)) as Box<dyn Work>)
    })))
}

fn shape(steps: &[BenchStep]) -> StoryShape {
    let story = "in the reported case 0.17 s, then 0.48 and 1.9 s with 125,000 and 250,000 threads";
    shape::grows_with_population(steps, 2.0, story)
}
