//! link-unlink: a second name of a file is made and removed.

use rustix::fs::{link, unlink};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "link-unlink",
    measures: "link() and unlink() of a file in a folder of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            own.file("file", 0)?;
            let (file, name) = (own.path("file")?, own.path("name")?);
            Ok(move || {
                link(&file, &name)?;
                unlink(&name)
            })
        })
    },
};
