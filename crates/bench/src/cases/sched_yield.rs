//! sched-yield: offers the CPU; with more workers than CPUs each offer may be taken.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "sched-yield",
    measures: "sched_yield(): back at once if nobody else wants the CPU",
    ladder: THREADS,
    prepare: operation!(|| {
        rustix::thread::sched_yield();
        Ok(())
    }),
};
