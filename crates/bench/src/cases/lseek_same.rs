//! lseek-same: the offset belongs to the open file, and its lock is held to set it.

use rustix::fs::{SeekFrom, seek};
use rustix::io::dup;

use super::{Alone, Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "lseek-same",
    measures: "lseek(SEEK_SET) in one open file by all workers",
    ladder: THREADS,
    prepare: |request| {
        // It keeps working without its name.
        let file = folder::root(request)?.file("file", 0)?;
        Ok(Box::new(Alone(move |_| {
            let file = dup(&file)?;
            Ok(Box::new(move || seek(&file, SeekFrom::Start(0)).map(drop)) as _)
        })))
    },
};
