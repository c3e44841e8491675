//! sem-sysv-population: does a new semaphore cost more, the more there are?

use super::sysv::{self, Semaphore};
use super::{Alone, Benchmark, Ladder, PROCESSES, Population, Prepared, Request};
use crate::ceiling::Resource;
use crate::{Error, Work, stop};

pub const CASE: Benchmark = Benchmark {
    id: "sem-sysv-population",
    measures: "semget() of a new set and semctl(IPC_RMID) while other sets exist",
    ladder: Ladder {
        workers: &[1],
        population: Some(Population {
            of: "sets of semaphores",
            sizes: &[0, 1_000, 10_000],
            uses: Resource::Semaphores,
        }),
        ..PROCESSES
    },
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let keys = sysv::keys(request);
    let population = sets(request)?;
    Ok(Box::new(Alone(move |id| {
        // What the closure names lives as long as it does.
        let _others = &population;
        let key = keys[id];
        Ok(Box::new(move || Semaphore::create(key).map(drop)) as Box<dyn Work>)
    })))
}

fn sets(request: &Request<'_>) -> Result<Vec<Semaphore>, Error> {
    if request.population > u64::from(sysv::WORKERS) {
        return Err(Error::Refused(format!("no more than {} sets: a run's keys", sysv::WORKERS)));
    }
    let mut sets = Vec::new();
    for slot in 0..request.population as u16 {
        if stop::requested() {
            return Err(Error::Stopped);
        }
        sets.push(Semaphore::create(request.traces.key(slot))?);
    }
    Ok(sets)
}
