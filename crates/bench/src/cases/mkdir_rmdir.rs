//! mkdir-rmdir: a folder is made and removed.

use rustix::fs::{Mode, mkdir, rmdir};

use super::{Case, THREADS, folder};

pub const CASE: Case = Case {
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
