//! pwrite-same: blocks apart from each other, but writers of a file exclude each other.

use super::folder::{self, BLOCK};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "pwrite-same",
    measures: "pwrite() of 4 kB over each worker's own part of one cached file",
    ladder: THREADS,
    prepare: |request| {
        folder::together(request, |shared, id| {
            let file = shared.file("file", (id + 1) * BLOCK)?;
            let block = vec![b'w'; BLOCK];
            let offset = (id * BLOCK) as u64;
            Ok(move || rustix::io::pwrite(&file, &block, offset).and_then(folder::whole))
        })
    },
};
