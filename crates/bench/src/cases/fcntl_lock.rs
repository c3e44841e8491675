//! fcntl-lock: a POSIX lock that nobody else wants.

use rustix::fs::{FlockOperation, fcntl_lock};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "fcntl-lock",
    measures: "fcntl(F_SETLKW) to lock and to unlock a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            Ok(move || {
                fcntl_lock(&file, FlockOperation::LockExclusive)?;
                fcntl_lock(&file, FlockOperation::Unlock)
            })
        })
    },
};
