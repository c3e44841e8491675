//! sched-affinity: binds a thread to the CPUs to which it is bound already.

use rustix::thread::{sched_getaffinity, sched_setaffinity};

use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "sched-affinity",
    measures: "sched_setaffinity() of this thread to the CPUs it may use already",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let allowed = sched_getaffinity(None)?;
            Ok(Box::new(move || sched_setaffinity(None, &allowed)) as _)
        })))
    },
};
