//! mmap-touch: address space and a page of memory.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "mmap-touch",
    measures: "mmap(), first touch and munmap() of a page of anonymous memory",
    ladder: THREADS,
    prepare: operation!(|| {
        let (page, access) = (rustix::param::page_size(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping is written to and unmapped.
        unsafe {
            let start = mmap_anonymous(std::ptr::null_mut(), page, access, MapFlags::PRIVATE)?;
            start.cast::<u8>().write_volatile(1);
            munmap(start, page)
        }
    }),
};
