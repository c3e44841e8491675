//! Why nothing can be said of a process.

use std::io;

use thiserror::Error;

/// What went wrong.
#[derive(Debug, Error)]
pub enum LiveError {
    /// There is none.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It has exited, and its parent has not waited for it yet.
    #[error("process {0} has exited already (its parent has not yet waited for it)")]
    Zombie(u32),
    /// It has no memory of its own.
    #[error("process {0} is a thread of the kernel: it has no program")]
    KernelThread(u32),
    /// It exited or called execve.
    #[error("process {0} exited or executed another program while it was looked at")]
    Gone(u32),
    /// Not for us.
    #[error("no permission to look into process {0}: needs its own user, or root (CAP_SYS_PTRACE)")]
    NoPermission(u32),
    /// It keeps those waiting who read its memory, or was not asked.
    #[error("{0}")]
    NoAnswer(String),
    /// Something else.
    #[error("cannot look into process {pid}: {source}")]
    Read {
        /// The process.
        pid: u32,
        /// What the kernel said.
        source: io::Error,
    },
}
