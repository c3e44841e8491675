//! writev: as write, gathered from ten places.

use std::io::IoSlice;

use rustix::fs::{SeekFrom, seek};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Benchmark, THREADS};

/// Bytes of a place: the last of the ten is a little smaller.
const PLACE: usize = BLOCK.div_ceil(10);

pub const CASE: Benchmark = Benchmark {
    id: "writev",
    measures: "writev() of 4 kB from 10 places over a cached file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let block = vec![b'w'; BLOCK];
            Ok(staged_for_three(
                own.file("file", 3 * BLOCK)?,
                |file| seek(file, SeekFrom::Start(0)).map(drop),
                move |file| {
                    let mut parts = block.chunks(PLACE);
                    let places: [IoSlice<'_>; 10] =
                        std::array::from_fn(|_| IoSlice::new(parts.next().unwrap_or_default()));
                    rustix::io::writev(file, &places).and_then(folder::whole)
                },
            ))
        })
    },
};
