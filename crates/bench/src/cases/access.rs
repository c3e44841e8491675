//! access: may this user read a file?

use rustix::fs::{Access, access};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "access",
    measures: "access(R_OK) of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let path = own.path("file")?;
            own.file("file", 0)?;
            Ok(move || access(&path, Access::READ_OK))
        })
    },
};
