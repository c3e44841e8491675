//! shm-attach: do processes that attach the same shared memory hinder each other? (story 4)

use std::sync::Arc;

use model::{BenchStep, StoryShape};

use super::sysv::{self, Segment};
use super::{Alone, Benchmark, Ladder, PROCESSES, Prepared, Request, shape};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "shm-attach",
    measures: "shmat() of one segment of 1 MiB and shmdt()",
    ladder: Ladder { shape: Some(judge), ..PROCESSES },
    prepare,
};

const BYTES: usize = 1 << 20;

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let shared = Arc::new(Segment::create(request.traces.key(sysv::SHARED), BYTES)?);
    Ok(Box::new(Alone(move |_| {
        let segment = Arc::clone(&shared);
        Ok(Box::new(move || segment.attach_and_detach()) as Box<dyn Work>)
    })))
}

fn judge(steps: &[BenchStep]) -> StoryShape {
    let story =
        "in the reported case 3.2 s alone, 98.8 s (33.6 s of it system time) for 4 processes";
    shape::slows_each_other(steps, 5.0, story)
}
