//! What can go wrong with a page.

use std::io;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Its data cannot be written as JSON.
    #[error("cannot write the page's data: {0}")]
    Data(#[from] serde_json::Error),
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A run cannot be read.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}
