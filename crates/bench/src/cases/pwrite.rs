//! pwrite: over what is there, at a given offset.

use super::folder::{self, BLOCK};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "pwrite",
    measures: "pwrite() of 4 kB over a cached file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BLOCK)?;
            let block = vec![b'w'; BLOCK];
            Ok(move || rustix::io::pwrite(&file, &block, 0).and_then(folder::whole))
        })
    },
};
