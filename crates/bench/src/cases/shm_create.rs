//! shm-create: do processes that make and remove shared memory hinder each other?

use super::sysv::{self, Segment};
use super::{Alone, Benchmark, PROCESSES, Prepared, Request};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "shm-create",
    measures: "shmget() of a new segment of 4 KiB and shmctl(IPC_RMID)",
    ladder: PROCESSES,
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let keys = sysv::keys(request);
    Ok(Box::new(Alone(move |id| {
        let key = keys[id];
        Ok(Box::new(move || Segment::create(key, 4096).map(drop)) as Box<dyn Work>)
    })))
}
