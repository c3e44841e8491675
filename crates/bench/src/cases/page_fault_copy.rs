//! page-fault-copy: a private mapping of a file is written to, so the page is copied.

use rustix::mm::MapFlags;

use super::mapping::{FirstTouches, Mapping};
use super::{Benchmark, THREADS, folder};

/// Size of a worker's file, bytes.
const BYTES: usize = 1 << 20;

pub const CASE: Benchmark = Benchmark {
    id: "page-fault-copy",
    measures: "first write to a page of a private mapping of a cached file",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BYTES)?;
            Ok(FirstTouches::of(Mapping::of_file(&file, BYTES, MapFlags::PRIVATE)?))
        })
    },
};
