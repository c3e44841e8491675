//! sched-yield: offers the CPU; with more workers than CPUs each offer may be taken.

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "sched-yield",
    measures: "sched_yield(): back at once if nobody else wants the CPU",
    ladder: THREADS,
    prepare: operation!(|| {
        rustix::thread::sched_yield();
        Ok(())
    }),
};
