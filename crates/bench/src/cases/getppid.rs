//! getppid: the way into the kernel and back.

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "getppid",
    measures: "getppid(): a system call that does next to nothing",
    ladder: THREADS,
    prepare: operation!(|| {
        std::hint::black_box(rustix::process::getppid());
        Ok(())
    }),
};
