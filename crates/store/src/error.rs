//! What can go wrong with a store, each in one line that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use model::RunId;
use rusqlite::{ErrorCode, ffi};

/// Why the store could not do what was asked. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No place for the default store.
    #[error("no place for the store: HOME is not set; give a file with --store or WHYLAG_STORE")]
    NoHome,
    /// Nothing to read.
    #[error(
        "{0}: nothing recorded here yet; record a run, or give another file with --store or \
         WHYLAG_STORE"
    )]
    Missing(PathBuf),
    /// No permission.
    #[error(
        "{0}: may not be read by this user; ask its owner, or give another file with --store or \
         WHYLAG_STORE"
    )]
    Unreadable(PathBuf),
    /// Others could have made what root is about to use.
    #[error(
        "{path}: {what}; root uses such a store only with --trust-store, or give another file with \
         --store or WHYLAG_STORE"
    )]
    Untrusted {
        /// The file, folder or link.
        path: PathBuf,
        /// Whose it is, or who may change it.
        what: String,
    },
    /// It is being recorded.
    #[error("{path}: run {run} is being recorded; end the recording first")]
    BeingRecorded {
        /// The file.
        path: PathBuf,
        /// The run.
        run: RunId,
    },
    /// The file or its folder could not be made or looked at.
    #[error(
        "{path}: {source}; check its folder, or give another file with --store or WHYLAG_STORE"
    )]
    Unusable {
        /// File or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else's file.
    #[error(
        "{path}: not a store of whylag ({what}), left untouched; give another file with --store \
         or WHYLAG_STORE"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Made by a later version.
    #[error(
        "{path}: written by a newer whylag (schema {found}, known up to {known}), left untouched; \
         update whylag, or give another file with --store"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: usize,
        /// Ours.
        known: usize,
    },
    /// Its content makes no sense.
    #[error(
        "{path}: damaged ({what}), left untouched; move it away or restore it from a backup, or \
         give another file with --store"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// Writing was asked for where only reading is possible.
    #[error(
        "{0}: cannot be written (file, folder or file system is read-only); give another file \
         with --store or WHYLAG_STORE"
    )]
    ReadOnly(PathBuf),
    /// The log next to a store in a read-only folder cannot be read there.
    #[error(
        "{0}: its last batches are still in {0}-wal, which cannot be read in a read-only folder; \
         copy both files to a folder that can be written"
    )]
    LogInReadOnlyFolder(PathBuf),
    /// No space left; all that was stored before is intact.
    #[error("{0}: no space left on the disk; free some, or give another file with --store")]
    DiskFull(PathBuf),
    /// A write failed for another reason.
    #[error(
        "{0}: cannot be written any more (an error of the disk, or a limit of the size of files, \
         as 'ulimit -f' sets it); raise the limit, or give another file with --store"
    )]
    Unwritable(PathBuf),
    /// The file was taken away while it was used.
    #[error(
        "{0}: removed or replaced while it was written to; keep others from doing so, or give \
         another file with --store"
    )]
    Replaced(PathBuf),
    /// Another process kept it locked for too long.
    #[error("{0}: another process has been writing to it for over 10 s; try again when it is done")]
    Busy(PathBuf),
    /// No such run.
    #[error("{path}: there is no run {run}; `whylag runs` lists what there is")]
    NoSuchRun {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        run: RunId,
    },
    /// Anything else that SQLite says.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Its words.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Says in our terms what SQLite said about the store at `path`.
    pub(crate) fn of_sqlite(path: &Path, source: rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        if is_undecodable(&source) {
            return StoreError::Damaged { path, what: source.to_string() };
        }
        match source.sqlite_error() {
            Some(error) if is_full(error) => StoreError::DiskFull(path),
            Some(error) if is_unwritable(error) => StoreError::Unwritable(path),
            Some(error) => match error.code {
                ErrorCode::DatabaseCorrupt => {
                    StoreError::Damaged { path, what: source.to_string() }
                }
                ErrorCode::NotADatabase => StoreError::Foreign { path, what: "not an SQLite file" },
                ErrorCode::DatabaseBusy => StoreError::Busy(path),
                ErrorCode::ReadOnly => StoreError::ReadOnly(path),
                _ => StoreError::Sqlite { path, source },
            },
            None => StoreError::Sqlite { path, source },
        }
    }
}

/// Without space, SQLite fails either in a write or when it enlarges the -shm file.
fn is_full(error: &ffi::Error) -> bool {
    error.code == ErrorCode::DiskFull || error.extended_code == ffi::SQLITE_IOERR_SHMSIZE
}

fn is_unwritable(error: &ffi::Error) -> bool {
    matches!(
        error.extended_code,
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE | ffi::SQLITE_IOERR_FSYNC
    )
}

/// A stored value is not of the form that we write.
fn is_undecodable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
