//! fsync: what was written is brought to the disk, the file's attributes too.

use rustix::fs::fsync;
use rustix::io::pwrite;

use super::folder::{self, BLOCK};
use super::staged::staged;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "fsync",
    measures: "fsync() of a file of the worker's own after 4 kB were written to it",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let block = vec![b'w'; BLOCK];
            Ok(staged(
                own.file("file", BLOCK)?,
                move |file| pwrite(file, &block, 0).and_then(folder::whole),
                |file| fsync(file),
            ))
        })
    },
};
