//! create: a new file.

use rustix::fs::{OFlags, open, unlink};
use rustix::io::Errno;

use super::folder::{self, MODE};
use super::staged::staged;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "create",
    measures: "open(O_CREAT) of a new file in a folder of the worker's own, and close()",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            Ok(staged(
                own.path("file")?,
                |path| match unlink(&*path) {
                    Ok(()) | Err(Errno::NOENT) => Ok(()),
                    Err(errno) => Err(errno),
                },
                move |path| open(&*path, new, MODE).map(drop),
            ))
        })
    },
};
