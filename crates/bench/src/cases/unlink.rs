//! unlink: an empty file is removed.

use rustix::fs::{OFlags, open};

use super::folder::{self, MODE};
use super::staged::staged;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "unlink",
    measures: "unlink() of an empty file in a folder of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            Ok(staged(
                own.path("file")?,
                |path| open(&*path, OFlags::CREATE | OFlags::WRONLY, MODE).map(drop),
                |path| rustix::fs::unlink(&*path),
            ))
        })
    },
};
