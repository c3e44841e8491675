//! memfd: a file without a name, in memory.

use rustix::fs::{MemfdFlags, memfd_create};

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "memfd",
    measures: "memfd_create() and close()",
    ladder: THREADS,
    prepare: operation!(|| memfd_create(c"whylag", MemfdFlags::CLOEXEC).map(drop)),
};
