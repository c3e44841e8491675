//! Why there are no facts of a file.

use std::io;

use thiserror::Error;

use crate::files::FileError;

/// What went wrong; never a panic, whatever the file says.
#[derive(Debug, Error)]
pub enum ElfError {
    /// It is not opened.
    #[error(transparent)]
    Refused(FileError),
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is nothing that is known here: no ELF file, 32-bit, big-endian, another machine.
    #[error("unknown here: {0}")]
    Unknown(String),
    /// It has more of something than is read.
    #[error("too large: {0}")]
    TooLarge(String),
    /// It contradicts itself or its length.
    #[error("damaged: {0}")]
    Damaged(String),
}

impl From<FileError> for ElfError {
    fn from(error: FileError) -> ElfError {
        match error {
            FileError::System(error) => ElfError::Read(error),
            other => ElfError::Refused(other),
        }
    }
}

impl ElfError {
    pub(super) fn damaged(what: impl Into<String>) -> ElfError {
        ElfError::Damaged(what.into())
    }
}
