//! page-fault-shared: a shared mapping of a file is written to; the file system is asked each time.

use rustix::mm::{Advice, MapFlags};

use super::mapping::Mapping;
use super::staged::staged;
use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "page-fault-shared",
    measures: "first write to a shared mapping of a page of a cached file",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            // One page only: of more, one fault can map many (large folios).
            let bytes = rustix::param::page_size();
            let file = own.file("file", bytes)?;
            Ok(staged(
                Mapping::of_file(&file, bytes, MapFlags::SHARED)?,
                |page| page.advise(Advice::LinuxDontNeed),
                |page| {
                    page.write(0);
                    Ok(())
                },
            ))
        })
    },
};
