//! open-close-same: as open-close, where all meet in the counts of one file's directory entry.

use rustix::fs::{Mode, OFlags, open};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "open-close-same",
    measures: "open() and close() of one file by all workers",
    ladder: THREADS,
    prepare: |request| {
        folder::together(request, |shared, _| {
            let path = shared.path("file")?;
            shared.file("file", 0)?;
            Ok(move || open(&path, OFlags::RDONLY, Mode::empty()).map(drop))
        })
    },
};
