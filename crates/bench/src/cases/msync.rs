//! msync: what was written to a mapping of a file is brought to the disk.

use rustix::mm::{MapFlags, MsyncFlags};

use super::mapping::Mapping;
use super::staged::staged;
use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "msync",
    measures: "msync(MS_SYNC) of a page of a shared file mapping after it was written to",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let bytes = rustix::param::page_size();
            let file = own.file("file", bytes)?;
            Ok(staged(
                Mapping::of_file(&file, bytes, MapFlags::SHARED)?,
                |page| {
                    page.write(0);
                    Ok(())
                },
                |page| {
                    // SAFETY: a mapping of ours.
                    unsafe { rustix::mm::msync(page.start.cast(), page.bytes, MsyncFlags::SYNC) }
                },
            ))
        })
    },
};
