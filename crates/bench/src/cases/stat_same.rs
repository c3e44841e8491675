//! stat-same: as stat, where all meet in one directory entry.

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "stat-same",
    measures: "stat() of one file by all workers",
    ladder: THREADS,
    prepare: |request| {
        folder::together(request, |shared, _| {
            let path = shared.path("file")?;
            shared.file("file", 0)?;
            Ok(move || rustix::fs::stat(&path).map(drop))
        })
    },
};
