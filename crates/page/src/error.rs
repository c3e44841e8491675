//! What can go wrong with a page.

use std::io;
use std::path::PathBuf;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Its data cannot be written as JSON.
    #[error("cannot write the page's data: {0}")]
    Data(#[from] serde_json::Error),
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// No socket can be made.
    #[error("cannot listen at {}: {_1}; --socket takes a path where nothing is yet", .0.display())]
    Socket(PathBuf, #[source] io::Error),
    /// A run cannot be read.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}
