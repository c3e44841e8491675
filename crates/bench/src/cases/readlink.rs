//! readlink: where a symbolic link points to.

use rustix::fs::{CWD, readlinkat_raw, symlink};
use rustix::io::Errno;

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "readlink",
    measures: "readlink() of a symbolic link of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let link = own.path("link")?;
            match symlink(c"nowhere", &link) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut target = [0u8; 64];
            Ok(move || readlinkat_raw(CWD, &link, &mut target[..]).map(drop))
        })
    },
};
