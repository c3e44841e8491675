//! What ends a verb early, and with which exit status.

use std::fmt;
use std::io;
use std::process::ExitCode;

use inspect::live::LiveError;
use observe::Error;
use store::{RunFileError, StoreError};

/// Why a verb could not do its work.
pub enum Failure {
    /// The user named something that cannot be used: exit status 2.
    Usage(String),
    /// What the user named can be several things, each in a line of its own: exit status 2.
    Ambiguous {
        /// What to do.
        message: String,
        /// What it can be.
        choices: Vec<String>,
    },
    /// Something failed: exit status 1.
    Failed(anyhow::Error),
    /// Whoever read our output has closed it (`whylag show | head`): no failure.
    ReaderLeft,
}

impl Failure {
    /// 2 for wrong usage, else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) | Failure::Ambiguous { .. } => ExitCode::from(2),
            Failure::Failed(_) => ExitCode::FAILURE,
            Failure::ReaderLeft => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Ambiguous { message, .. } => f.write_str(message),
            Failure::Failed(error) => write!(f, "{error:#}"),
            Failure::ReaderLeft => Ok(()),
        }
    }
}

/// All but a full disk and a failing SQLite are about the file that was named.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            // Its text has its source already; the chain would say that twice.
            StoreError::DiskFull(_)
            | StoreError::Unwritable(_)
            | StoreError::Replaced(_)
            | StoreError::Busy(_)
            | StoreError::Sqlite { .. } => Failure::Failed(anyhow::Error::msg(error.to_string())),
            _ => Failure::Usage(error.to_string()),
        }
    }
}

impl From<page::PageError> for Failure {
    fn from(error: page::PageError) -> Failure {
        match error {
            page::PageError::Store(error) => error.into(),
            page::PageError::Io(error) => error.into(),
            page::PageError::Socket(..) => Failure::Usage(error.to_string()),
            page::PageError::Data(_) => Failure::Failed(error.into()),
        }
    }
}

impl From<RunFileError> for Failure {
    fn from(error: RunFileError) -> Failure {
        match error {
            RunFileError::Store(error) => error.into(),
            RunFileError::Unwritable(source) if source.kind() == io::ErrorKind::BrokenPipe => {
                Failure::ReaderLeft
            }
            RunFileError::Unwritable(_) => Failure::Failed(error.into()),
            _ => Failure::Usage(error.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::NoProcess(_)
            | Error::NoThread(_)
            | Error::NoCgroups(_)
            | Error::NoCgroup(_)
            | Error::Command { .. } => Failure::Usage(error.to_string()),
            Error::SeveralCgroups { ref listed, .. } => {
                Failure::Ambiguous { message: error.to_string(), choices: listed.clone() }
            }
            // Its text has its source already; the chain would say that twice.
            _ => Failure::Failed(anyhow::Error::msg(error.to_string())),
        }
    }
}

impl From<jitter::Error> for Failure {
    fn from(error: jitter::Error) -> Failure {
        if error.is_usage() {
            Failure::Usage(error.to_string())
        } else {
            Failure::Failed(error.into())
        }
    }
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Failure {
        match error {
            LiveError::NoProcess(_) | LiveError::Zombie(_) | LiveError::KernelThread(_) => {
                Failure::Usage(error.to_string())
            }
            _ => Failure::Failed(error.into()),
        }
    }
}

/// A trace that cannot be read is the user's to see to.
impl From<trace::reader::ReadError> for Failure {
    fn from(error: trace::reader::ReadError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<explain::QuestionError> for Failure {
    fn from(error: explain::QuestionError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<explain::UnknownCause> for Failure {
    fn from(error: explain::UnknownCause) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::Failed(error.into()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Failed(error)
    }
}
