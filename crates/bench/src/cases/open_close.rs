//! open-close: a file looked up, opened and closed.

use rustix::fs::{Mode, OFlags, open};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "open-close",
    measures: "open() and close() of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let path = own.path("file")?;
            own.file("file", 0)?;
            Ok(move || open(&path, OFlags::RDONLY, Mode::empty()).map(drop))
        })
    },
};
