//! append: a file becomes longer, as a log does.

use rustix::fs::{OFlags, fcntl_setfl, ftruncate};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Benchmark, THREADS};

/// The file is emptied, untimed, after so many operations.
const EMPTIED_AFTER: u32 = 64;

pub const CASE: Benchmark = Benchmark {
    id: "append",
    measures: "write() of 4 kB to the end (O_APPEND) of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            fcntl_setfl(&file, OFlags::APPEND)?;
            let block = vec![b'w'; BLOCK];
            Ok(staged_for_three(
                (file, 0),
                |(file, rounds)| {
                    *rounds += 1;
                    if *rounds % EMPTIED_AFTER == 1 { ftruncate(file, 0) } else { Ok(()) }
                },
                move |(file, _)| rustix::io::write(file, &block).and_then(folder::whole),
            ))
        })
    },
};
