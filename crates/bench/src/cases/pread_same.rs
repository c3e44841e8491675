//! pread-same: as pread, where all meet in the counts of one page.

use super::folder::{self, BLOCK};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "pread-same",
    measures: "pread() of the same 4 kB of one cached file by all workers",
    ladder: THREADS,
    prepare: |request| {
        folder::together(request, |shared, _| {
            let file = shared.file("file", BLOCK)?;
            let mut buffer = vec![0u8; BLOCK];
            Ok(move || rustix::io::pread(&file, &mut buffer[..], 0).and_then(folder::whole))
        })
    },
};
