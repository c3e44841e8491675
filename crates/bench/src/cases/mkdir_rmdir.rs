//! mkdir-rmdir: a folder is made and removed. Where a file system is mounted with `discard`, rmdir
//! can wait until the disk has taken note of the block that is free again.

use rustix::fs::{Mode, mkdir, rmdir};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "mkdir-rmdir",
    measures: "mkdir() and rmdir() in a folder of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let path = own.path("folder")?;
            Ok(move || {
                mkdir(&path, Mode::RWXU)?;
                rmdir(&path)
            })
        })
    },
};
