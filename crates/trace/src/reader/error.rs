//! Why a file is not read, with the place in it where that shows.

use std::io;
use std::path::PathBuf;

/// Why a trace could not be read, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refused something.
    #[error("{path}: {doing}: {source}")]
    System {
        /// File or folder.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Reading at an offset failed: the file may have been cut short.
    #[error("the trace cannot be read at offset {offset}: {source}")]
    Read {
        /// Byte of the file.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what the format says.
    #[error("not a trace to trust: at offset {offset} {why}")]
    Refused {
        /// Byte of the file.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// A later major version.
    #[error("the trace has version {0}, this reader knows version 1; use a later whylag")]
    Version(u16),
    /// Only a crashed or closed program's file may be removed.
    #[error("{0}: its program may still write it; not removed")]
    InUse(PathBuf),
}

/// A refusal of what lies at `offset`.
pub(crate) fn refused(offset: u64, why: impl Into<String>) -> ReadError {
    ReadError::Refused { offset, why: why.into() }
}
