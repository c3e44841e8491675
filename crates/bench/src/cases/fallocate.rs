//! fallocate: blocks on the disk without writing them.

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;

use super::staged::staged_for_three;
use super::{Benchmark, THREADS, folder};
use crate::Error;

/// Bytes asked for at a time.
const BYTES: u64 = 64 << 10;
/// The file is emptied, untimed, when it would get longer: to free blocks can take a disk long.
const LONGEST: u64 = 4 << 20;

pub const CASE: Benchmark = Benchmark {
    id: "fallocate",
    measures: "fallocate() of the next 64 kB of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        let tried = folder::root(request)?.file("tried", 0)?;
        match fallocate(&tried, FallocateFlags::empty(), 0, BYTES) {
            Err(Errno::OPNOTSUPP) => {
                let why = "the file system of $TMPDIR has no fallocate(): set TMPDIR to another";
                return Err(Error::Refused(why.to_owned()));
            }
            tried => tried?,
        }
        folder::each(request, |own| {
            Ok(staged_for_three(
                (own.file("file", 0)?, LONGEST),
                |(file, next)| {
                    if *next + 3 * BYTES > LONGEST {
                        ftruncate(&*file, 0)?;
                        *next = 0;
                    }
                    Ok(())
                },
                |(file, next)| {
                    fallocate(&*file, FallocateFlags::empty(), *next, BYTES)?;
                    *next += BYTES;
                    Ok(())
                },
            ))
        })
    },
};
