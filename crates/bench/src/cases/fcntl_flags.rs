//! fcntl-flags: about the least that can be asked of an open file.

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "fcntl-flags",
    measures: "fcntl(F_GETFL) of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            Ok(move || rustix::fs::fcntl_getfl(&file).map(drop))
        })
    },
};
