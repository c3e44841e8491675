//! fstat: a file's attributes by its descriptor, so without a path to walk.

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "fstat",
    measures: "fstat() of an open file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            Ok(move || rustix::fs::fstat(&file).map(drop))
        })
    },
};
