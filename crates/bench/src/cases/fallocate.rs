//! fallocate: blocks on the disk without writing them.

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;

use super::staged::staged;
use super::{Case, THREADS, folder};
use crate::Error;

/// Bytes asked for.
const BYTES: u64 = 1 << 20;

pub const CASE: Case = Case {
    id: "fallocate",
    measures: "fallocate() of 1 MB for an empty file of the worker's own",
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
            Ok(staged(
                own.file("file", 0)?,
                |file| ftruncate(file, 0),
                |file| fallocate(file, FallocateFlags::empty(), 0, BYTES),
            ))
        })
    },
};
