//! fork-exit: the life of a process that does nothing. The larger the parent, the more it costs.

use super::{Benchmark, PROCESSES, last_error, operation};

pub const CASE: Benchmark = Benchmark {
    id: "fork-exit",
    measures: "fork(), _exit() of the child, waitpid(); with the page faults of both afterwards",
    ladder: PROCESSES,
    prepare: operation!(|| {
        // SAFETY: the child does nothing but leave.
        match unsafe { libc::fork() } {
            -1 => Err(last_error()),
            // SAFETY: ends the child without running what the parent registered.
            0 => unsafe { libc::_exit(0) },
            // SAFETY: a child of ours; its status is not wanted.
            child => match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
                -1 => Err(last_error()),
                _ => Ok(()),
            },
        }
    }),
};
