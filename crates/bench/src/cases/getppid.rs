//! getppid: the way into the kernel and back.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "getppid",
    measures: "getppid(): a system call that does next to nothing",
    ladder: THREADS,
    prepare: operation!(|| {
        std::hint::black_box(rustix::process::getppid());
        Ok(())
    }),
};
