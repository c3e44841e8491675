//! getpid: a system call that only reads.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "getpid",
    measures: "getpid(): the number of this process, asked of the kernel each time",
    ladder: THREADS,
    prepare: operation!(|| {
        std::hint::black_box(rustix::process::getpid());
        Ok(())
    }),
};
