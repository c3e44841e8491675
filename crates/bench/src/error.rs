//! What can go wrong in a benchmark.

/// An error of this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{doing}: {source}")]
    Os {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A case cannot run here; the text says why and what to do.
    #[error("{0}")]
    Refused(String),
    /// A worker could not go on.
    #[error("worker {worker} of {case}: {why}")]
    Worker {
        /// Which.
        worker: usize,
        /// Of which case.
        case: &'static str,
        /// Why.
        why: String,
    },
    /// The user, or the end of who asked, ended it.
    #[error("ended by a signal")]
    Stopped,
}

impl Error {
    /// The last error of the system.
    pub fn os(doing: &str) -> Error {
        Error::Os { doing: doing.to_owned(), source: std::io::Error::last_os_error() }
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Error {
        Error::Os { doing: "a system call of the case".to_owned(), source: errno.into() }
    }
}
