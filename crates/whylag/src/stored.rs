//! The run that a verb is asked about.

use std::path::Path;

use model::{Run, RunId};
use store::{Sqlite, Store, location};

use crate::failure::Failure;

/// Opens the store for reading.
pub fn open(store: Option<&Path>) -> Result<Sqlite, Failure> {
    let path = location::locate(store)?;
    Ok(Sqlite::open_read_only(&path)?)
}

/// Loads a run: the newest if none is named.
pub fn load(store: Option<&Path>, run: Option<i64>) -> Result<Run, Failure> {
    let store = open(store)?;
    let id = match run {
        Some(number) => RunId(number),
        None => store.newest()?.ok_or_else(|| {
            Failure::Usage("the store has no run yet: record one with 'whylag record'".to_owned())
        })?,
    };
    Ok(store.load(id)?)
}
