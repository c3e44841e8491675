//! write: over what is there, at the file's own offset.

use rustix::fs::{SeekFrom, seek};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "write",
    measures: "write() of 4 kB over a cached file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let block = vec![b'w'; BLOCK];
            Ok(staged_for_three(
                own.file("file", 3 * BLOCK)?,
                |file| seek(file, SeekFrom::Start(0)).map(drop),
                move |file| rustix::io::write(file, &block).and_then(folder::whole),
            ))
        })
    },
};
