//! sched-getaffinity: which CPUs a thread may use.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "sched-getaffinity",
    measures: "sched_getaffinity() of this thread",
    ladder: THREADS,
    prepare: operation!(|| rustix::thread::sched_getaffinity(None).map(drop)),
};
