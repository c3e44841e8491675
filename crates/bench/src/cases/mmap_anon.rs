//! mmap-anon: address space, not yet memory.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "mmap-anon",
    measures: "mmap() and munmap() of a page of anonymous memory, untouched",
    ladder: THREADS,
    prepare: operation!(|| {
        let (page, access) = (rustix::param::page_size(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping, to which nothing refers, is unmapped.
        unsafe {
            let start = mmap_anonymous(std::ptr::null_mut(), page, access, MapFlags::PRIVATE)?;
            munmap(start, page)
        }
    }),
};
