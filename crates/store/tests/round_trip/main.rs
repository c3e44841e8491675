//! What goes into the store comes out again.

#![allow(clippy::unwrap_used, reason = "this is the test")]

#[path = "../common/mod.rs"]
mod common;

mod batches;
mod loaded_part;
mod runs;

use common::header;
use model::{Batch, RunId};
use store::{Sqlite, Store};
use tempfile::TempDir;

fn new_store() -> (TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    (folder, store)
}

fn reopened(folder: &TempDir) -> Sqlite {
    Sqlite::open_read_only(&folder.path().join("w.db")).unwrap()
}

fn begun_with(store: &mut Sqlite, batches: &[Batch]) -> RunId {
    let run = store.begin(&header()).unwrap();
    batches.iter().for_each(|batch| store.append(run, batch).unwrap());
    run
}
