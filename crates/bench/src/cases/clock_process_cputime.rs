//! clock-process-cputime: what a process pays to know its CPU time: a sum over its threads.

use super::{Benchmark, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-process-cputime",
    measures: "clock_gettime(CLOCK_PROCESS_CPUTIME_ID): the CPU time of all threads of the process",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_PROCESS_CPUTIME_ID),
};
