//! proc-scan-many: do several ps at once hinder each other? (story 4)

use model::{BenchStep, StoryShape};

use super::{Alone, Benchmark, Ladder, PROCESSES, Prepared, Request, shape, tasks};
use crate::ceiling::{self, Resource};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "proc-scan-many",
    measures: "one scan of /proc as by ps, with 5,000 sleeping threads of 100 processes",
    ladder: Ladder { shape: Some(judge), ..PROCESSES },
    prepare,
};

const THREADS: u64 = 5_000;

fn prepare(_: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    ceiling::check(Resource::Tasks, THREADS, "sleeping threads")?;
    let others = tasks::hold(THREADS)?;
    Ok(Box::new(Alone(move |_| {
        // What the closure names lives as long as it does.
        let _others = &others;
        let mut buffer = vec![0; 16 << 10];
        Ok(Box::new(move || tasks::scan(&mut buffer)) as Box<dyn Work>)
    })))
}

fn judge(steps: &[BenchStep]) -> StoryShape {
    shape::slows_each_other(
        steps,
        1.5,
        "in the reported case 1.2 s alone, 2.6 to 4.4 s for 4 at once",
    )
}
