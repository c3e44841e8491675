//! symlink-unlink: a symbolic link is made and removed.

use rustix::fs::{symlink, unlink};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "symlink-unlink",
    measures: "symlink() and unlink() in a folder of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let link = own.path("link")?;
            Ok(move || {
                symlink(c"nowhere", &link)?;
                unlink(&link)
            })
        })
    },
};
