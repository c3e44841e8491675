//! What can go wrong with a recording.

use std::io;

use crate::capability::Refusal;

/// Why a recording cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such process.
    #[error("no process with pid {0}: it may have ended; see 'ps -e'")]
    NoProcess(u32),
    /// No such thread.
    #[error("no thread with tid {0}: it may have ended; see 'ps -eT'")]
    NoThread(u32),
    /// The command cannot be started.
    #[error("cannot run '{program}': {source}")]
    Command {
        /// The program of the command.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused to load a program.
    #[error("{}", .0.because)]
    Refused(Refusal),
    /// The kernel refused a part of the recorder.
    #[error("the kernel refused the recorder ({step}): {source}")]
    Bpf {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// Something of the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` on libbpf results.
    pub(crate) fn bpf(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
        move |source| Error::Bpf { step, source }
    }

    /// For `map_err` on I/O results.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Error {
        move |source| Error::Io { doing, source: source.into() }
    }
}
