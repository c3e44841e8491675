//! flock-same: a lock that all want. It belongs to the open file, so threads that have opened it
//! for themselves wait for each other as processes do.

use rustix::fs::FlockOperation;

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "flock-same",
    measures: "flock() to lock and to unlock one file, opened by each worker for itself",
    ladder: THREADS,
    prepare: |request| {
        folder::together(request, |shared, _| {
            let file = shared.file("file", 0)?;
            Ok(move || {
                rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
                rustix::fs::flock(&file, FlockOperation::Unlock)
            })
        })
    },
};
