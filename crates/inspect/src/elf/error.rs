//! Why there are no facts of a file.

use std::io;

use thiserror::Error;

/// What went wrong; never a panic, whatever the file says.
#[derive(Debug, Error)]
pub enum ElfError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is nothing that is known here: no ELF file, 32-bit, big-endian, another machine.
    #[error("unknown here: {0}")]
    Unknown(String),
    /// It contradicts itself or its length.
    #[error("damaged: {0}")]
    Damaged(String),
}

impl ElfError {
    pub(super) fn damaged(what: impl Into<String>) -> ElfError {
        ElfError::Damaged(what.into())
    }
}
