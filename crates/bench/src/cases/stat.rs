//! stat: a file's attributes by its path.

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "stat",
    measures: "stat() of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let path = own.path("file")?;
            own.file("file", 0)?;
            Ok(move || rustix::fs::stat(&path).map(drop))
        })
    },
};
