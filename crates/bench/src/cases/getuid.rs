//! getuid: a system call that reads the credentials.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "getuid",
    measures: "getuid(): reads the credentials of this thread",
    ladder: THREADS,
    prepare: operation!(|| {
        std::hint::black_box(rustix::process::getuid());
        Ok(())
    }),
};
