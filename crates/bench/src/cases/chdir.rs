//! chdir: the working directory is set, which all threads of a process share.

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "chdir",
    measures: "chdir() to where one is",
    ladder: THREADS,
    prepare: operation!(|| rustix::process::chdir(c".")),
};
