//! What can go wrong.

use std::io;

/// Why timers cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No source has this name.
    #[error("there is no source '{name}'; {hint}")]
    UnknownSource {
        /// As typed.
        name: String,
        /// The nearest names, or all.
        hint: String,
    },
    /// Intervals or times that make no sense.
    #[error("{0}")]
    Plan(String),
    /// The CPU does not exist or may not be used.
    #[error("CPU {cpu} cannot be used: {because}")]
    Cpu {
        /// As asked.
        cpu: usize,
        /// Why.
        because: String,
    },
    /// No real-time priority.
    #[error("SCHED_FIFO {priority} is not allowed here: {because}")]
    Fifo {
        /// As asked.
        priority: i32,
        /// Why, and what to do.
        because: String,
    },
    /// The command cannot be run.
    #[error("cannot run '{program}': {source}")]
    Command {
        /// Its first word.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// True if the user named something that cannot be used.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Error::System { .. })
    }

    /// For `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| Error::System { what, source: source.into() }
    }
}
