//! sem-op: what semop() costs, and how much its users hinder each other.

use std::sync::Arc;

use super::sysv::{self, Semaphore};
use super::{Alone, Benchmark, PROCESSES, Prepared, Request};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "sem-op",
    measures: "semop() down and semop() up on one semaphore that has room for all",
    ladder: PROCESSES,
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let shared = Arc::new(Semaphore::create(request.traces.key(sysv::SHARED))?);
    // Nobody sleeps: what is measured is the kernel's own lock on the set.
    shared.set(request.workers)?;
    Ok(Box::new(Alone(move |_| {
        let semaphore = Arc::clone(&shared);
        let down_and_up = move || semaphore.change(-1).and_then(|()| semaphore.change(1));
        Ok(Box::new(down_and_up) as Box<dyn Work>)
    })))
}
