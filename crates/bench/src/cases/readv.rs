//! readv: as read, scattered to ten places.

use std::io::IoSliceMut;

use rustix::fs::{SeekFrom, seek};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Benchmark, THREADS};

/// Bytes of a place: the last of the ten is a little smaller.
const PLACE: usize = BLOCK.div_ceil(10);

pub const CASE: Benchmark = Benchmark {
    id: "readv",
    measures: "readv() of 4 kB of a cached file of the worker's own to 10 places",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let mut block = vec![0u8; BLOCK];
            Ok(staged_for_three(
                own.file("file", 3 * BLOCK)?,
                |file| seek(file, SeekFrom::Start(0)).map(drop),
                move |file| {
                    let mut parts = block.chunks_mut(PLACE);
                    let mut places: [IoSliceMut<'_>; 10] =
                        std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
                    rustix::io::readv(file, &mut places).and_then(folder::whole)
                },
            ))
        })
    },
};
