//! getuid: a system call that reads the credentials.

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "getuid",
    measures: "getuid(): reads the credentials of this thread",
    ladder: THREADS,
    prepare: operation!(|| {
        std::hint::black_box(rustix::process::getuid());
        Ok(())
    }),
};
