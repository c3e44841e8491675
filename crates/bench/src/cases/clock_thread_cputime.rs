//! clock-thread-cputime: what a thread pays to know its CPU time: a system call.

use super::{Benchmark, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-thread-cputime",
    measures: "clock_gettime(CLOCK_THREAD_CPUTIME_ID): the CPU time of the thread",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_THREAD_CPUTIME_ID),
};
