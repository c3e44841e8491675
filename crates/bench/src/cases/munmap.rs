//! munmap: address space and memory are given back.

use rustix::mm::ProtFlags;

use super::mapping::Mapping;
use super::staged::staged;
use super::{Alone, Benchmark, THREADS};

/// Pages of the mapping.
const PAGES: usize = 32;

pub const CASE: Benchmark = Benchmark {
    id: "munmap",
    measures: "munmap() of 32 touched pages of anonymous memory",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            Ok(Box::new(staged(
                None,
                |mapping| {
                    let bytes = PAGES * rustix::param::page_size();
                    let new = Mapping::anonymous(bytes, ProtFlags::READ | ProtFlags::WRITE)?;
                    (0..PAGES).for_each(|page| new.write(page));
                    *mapping = Some(new);
                    Ok(())
                },
                |mapping| {
                    drop(mapping.take());
                    Ok(())
                },
            )) as _)
        })))
    },
};
