//! What can be wrong with a run file, each in one line that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Why a run file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFileError {
    /// The file could not be opened or read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else than a run.
    #[error(
        "{path}: not a run of whylag ({what}); give a file that 'whylag export --format run' wrote"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Made by a later version.
    #[error(
        "{path}: written by a newer whylag ({by}; format {found}, known up to {known}); update \
         whylag"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of that whylag.
        by: String,
        /// Version of its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Its content makes no sense.
    #[error("{path}: damaged ({what}); copy the file again, or export the run again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found, and where.
        what: String,
    },
    /// More than any run has.
    #[error("{path}: not read, {what} than the limit of {mib} MiB; no run comes near it")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is too large.
        what: &'static str,
        /// The limit.
        mib: u64,
    },
    /// What was exported could not be written.
    #[error("cannot write the run: {0}")]
    Unwritable(#[from] io::Error),
    /// The store that the run comes from or goes to.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunFileError {
    /// Says in our terms what the system or the decompressor said while `path` was read.
    pub(super) fn of_reading(path: &Path, error: io::Error) -> RunFileError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                RunFileError::Damaged { path, what: "cut short".to_owned() }
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                RunFileError::Damaged { path, what: clean(&error.to_string()) }
            }
            _ => RunFileError::Unreadable { path, source: error },
        }
    }
}

/// A text that may quote the file, fit for one line of a terminal.
pub(super) fn clean(text: &str) -> String {
    const LONGEST: usize = 160;
    text.chars().take(LONGEST).map(|c| if c.is_control() { '?' } else { c }).collect()
}
