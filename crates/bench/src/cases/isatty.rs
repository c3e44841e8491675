//! isatty: an ioctl() that a file refuses.

use std::os::fd::AsRawFd;

use rustix::io::Errno;

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "isatty",
    measures: "isatty() of a file, which is none",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            Ok(move || {
                // SAFETY: takes a descriptor, which is open.
                match unsafe { libc::isatty(file.as_raw_fd()) } {
                    0 => Ok(()),
                    _ => Err(Errno::IO),
                }
            })
        })
    },
};
