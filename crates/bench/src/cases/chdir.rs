//! chdir: the working directory is set, which all threads of a process share.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "chdir",
    measures: "chdir() to where one is",
    ladder: THREADS,
    prepare: operation!(|| rustix::process::chdir(c".")),
};
