//! madvise-dontneed: a page of memory is taken and given back, its address space kept.

use rustix::mm::{Advice, ProtFlags};

use super::mapping::Mapping;
use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "madvise-dontneed",
    measures: "touch of a page of anonymous memory and madvise(MADV_DONTNEED) of it",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let bytes = rustix::param::page_size();
            let page = Mapping::anonymous(bytes, ProtFlags::READ | ProtFlags::WRITE)?;
            Ok(Box::new(move || {
                page.write(0);
                page.advise(Advice::LinuxDontNeed)
            }) as _)
        })))
    },
};
