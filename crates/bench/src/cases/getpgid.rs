//! getpgid: a look-up of the process group.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "getpgid",
    measures: "getpgid() of this process",
    ladder: THREADS,
    prepare: operation!(|| rustix::process::getpgid(None).map(drop)),
};
