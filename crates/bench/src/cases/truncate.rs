//! truncate: a block is given back.

use rustix::fs::ftruncate;
use rustix::io::pwrite;

use super::folder::{self, BLOCK};
use super::staged::staged;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "truncate",
    measures: "ftruncate() of a file of the worker's own from 4 kB, just written, to nothing",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let block = vec![b'w'; BLOCK];
            Ok(staged(
                own.file("file", 0)?,
                move |file| pwrite(file, &block, 0).and_then(folder::whole),
                |file| ftruncate(file, 0),
            ))
        })
    },
};
