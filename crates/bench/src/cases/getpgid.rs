//! getpgid: a look-up of the process group.

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "getpgid",
    measures: "getpgid() of this process",
    ladder: THREADS,
    prepare: operation!(|| rustix::process::getpgid(None).map(drop)),
};
