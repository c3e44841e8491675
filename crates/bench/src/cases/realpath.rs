//! realpath: a path freed of symbolic links, by the C library: a readlink() for each part of it.

use rustix::io::Errno;

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "realpath",
    measures: "realpath() of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            own.file("file", 0)?;
            let path = own.path("file")?;
            let mut resolved = vec![0u8; libc::PATH_MAX as usize];
            Ok(move || {
                // SAFETY: a string with its end, and a place for the longest path.
                let got = unsafe { libc::realpath(path.as_ptr(), resolved.as_mut_ptr().cast()) };
                if got.is_null() { Err(Errno::NOENT) } else { Ok(()) }
            })
        })
    },
};
