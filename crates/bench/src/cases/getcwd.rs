//! getcwd: the path of the working directory.

use rustix::io::Errno;

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "getcwd",
    measures: "getcwd()",
    ladder: THREADS,
    prepare: operation!({
        let mut path = vec![0u8; libc::PATH_MAX as usize];
        move || {
            // SAFETY: `path` is valid for writing its length.
            let got = unsafe { libc::getcwd(path.as_mut_ptr().cast(), path.len()) };
            if got.is_null() { Err(Errno::NOENT) } else { Ok(()) }
        }
    }),
};
