//! read: from the page cache, at the file's own offset.

use rustix::fs::{SeekFrom, seek};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "read",
    measures: "read() of 4 kB of a cached file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let mut buffer = vec![0u8; BLOCK];
            Ok(staged_for_three(
                own.file("file", 3 * BLOCK)?,
                |file| seek(file, SeekFrom::Start(0)).map(drop),
                move |file| rustix::io::read(file, &mut buffer[..]).and_then(folder::whole),
            ))
        })
    },
};
