//! flock: a lock of an open file that nobody else wants.

use rustix::fs::FlockOperation;

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "flock",
    measures: "flock() to lock and to unlock a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            Ok(move || {
                rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
                rustix::fs::flock(&file, FlockOperation::Unlock)
            })
        })
    },
};
