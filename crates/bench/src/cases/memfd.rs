//! memfd: a file without a name, in memory.

use rustix::fs::{MemfdFlags, memfd_create};

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "memfd",
    measures: "memfd_create() and close()",
    ladder: THREADS,
    prepare: operation!(|| memfd_create(c"whylag", MemfdFlags::CLOEXEC).map(drop)),
};
