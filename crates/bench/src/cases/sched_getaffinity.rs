//! sched-getaffinity: which CPUs a thread may use.

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "sched-getaffinity",
    measures: "sched_getaffinity() of this thread",
    ladder: THREADS,
    prepare: operation!(|| rustix::thread::sched_getaffinity(None).map(drop)),
};
