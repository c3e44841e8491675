//! rename: a file there and back between two names.

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "rename",
    measures: "rename() of a file within a folder of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            own.file("here", 0)?;
            let (mut from, mut to) = (own.path("here")?, own.path("there")?);
            Ok(move || {
                rustix::fs::rename(&from, &to)?;
                std::mem::swap(&mut from, &mut to);
                Ok(())
            })
        })
    },
};
