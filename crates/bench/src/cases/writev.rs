//! writev: as write, gathered from ten places.

use std::io::IoSlice;

use rustix::fs::{SeekFrom, seek};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Case, THREADS};

/// Places in memory.
const PLACES: usize = 10;

pub const CASE: Case = Case {
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
                    let part = BLOCK / PLACES;
                    let places: [IoSlice<'_>; PLACES] = std::array::from_fn(|place| {
                        let end = if place + 1 == PLACES { BLOCK } else { (place + 1) * part };
                        IoSlice::new(&block[place * part..end])
                    });
                    rustix::io::writev(file, &places).and_then(folder::whole)
                },
            ))
        })
    },
};
