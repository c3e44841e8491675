//! pread: from the page cache, at a given offset.

use super::folder::{self, BLOCK};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "pread",
    measures: "pread() of 4 kB of a cached file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BLOCK)?;
            let mut buffer = vec![0u8; BLOCK];
            Ok(move || rustix::io::pread(&file, &mut buffer[..], 0).and_then(folder::whole))
        })
    },
};
