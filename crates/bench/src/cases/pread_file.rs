//! pread-file: what mmap-file maps is read instead: story 2's cure.

use super::mmap_file::{BYTES, THREADS_TO_16};
use super::{Benchmark, Ladder, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "pread-file",
    measures: "pread() of 1265444 bytes, a whole cached file of the worker's own",
    ladder: Ladder { workers: THREADS_TO_16, ..THREADS },
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BYTES)?;
            let mut buffer = vec![0u8; BYTES];
            Ok(move || match rustix::io::pread(&file, &mut buffer[..], 0)? {
                BYTES => Ok(()),
                _ => Err(rustix::io::Errno::IO),
            })
        })
    },
};
