//! fcntl-lock-same: a POSIX lock that all want. It belongs to a process: its threads have it
//! together, so only processes wait for each other.

use rustix::fs::{FlockOperation, fcntl_lock};

use super::{Benchmark, PROCESSES, folder};

pub const CASE: Benchmark = Benchmark {
    id: "fcntl-lock-same",
    measures: "fcntl(F_SETLKW) to lock and to unlock one file by all workers",
    ladder: PROCESSES,
    prepare: |request| {
        folder::together(request, |shared, _| {
            let file = shared.file("file", 0)?;
            Ok(move || {
                fcntl_lock(&file, FlockOperation::LockExclusive)?;
                fcntl_lock(&file, FlockOperation::Unlock)
            })
        })
    },
};
