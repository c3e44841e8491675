//! lseek: a file's offset is set.

use rustix::fs::{SeekFrom, seek};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "lseek",
    measures: "lseek(SEEK_SET) in a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            Ok(move || seek(&file, SeekFrom::Start(0)).map(drop))
        })
    },
};
