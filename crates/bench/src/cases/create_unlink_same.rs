//! create-unlink-same: files of their own, but who changes a folder excludes all others from it.

use rustix::fs::{OFlags, open, unlink};

use super::folder::{self, MODE};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "create-unlink-same",
    measures: "open(O_CREAT), close() and unlink() of a new file in the folder of all workers",
    ladder: THREADS,
    prepare: |request| {
        folder::together(request, |shared, id| {
            let path = shared.path(id)?;
            let new = OFlags::CREATE | OFlags::WRONLY;
            Ok(move || {
                drop(open(&path, new, MODE)?);
                unlink(&path)
            })
        })
    },
};
