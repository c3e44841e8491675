//! sem-sysv: do processes that make and remove semaphores hinder each other? (story 4)

use model::{BenchStep, StoryShape};

use super::sysv::{self, Semaphore};
use super::{Alone, Benchmark, Ladder, PROCESSES, Prepared, Request, shape};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "sem-sysv",
    measures: "semget() of a new set of one semaphore and semctl(IPC_RMID)",
    ladder: Ladder { workers: &[1, 2, 3, 4], shape: Some(judge), ..PROCESSES },
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let keys = sysv::keys(request);
    Ok(Box::new(Alone(move |id| {
        let key = keys[id];
        Ok(Box::new(move || Semaphore::create(key).map(drop)) as Box<dyn Work>)
    })))
}

fn judge(steps: &[BenchStep]) -> StoryShape {
    let story =
        "in the reported case (sem_init) 8.3 s alone, 14.3, 16.5, 22.4 s for 2, 3, 4 processes";
    shape::slows_each_other(steps, 1.5, story)
}
