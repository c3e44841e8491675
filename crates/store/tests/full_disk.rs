//! A full disk ends a recording; what was stored before stays.

#![allow(clippy::unwrap_used, reason = "this is the test")]

mod common;

use common::*;
use model::*;
use store::{Sqlite, Store, StoreError};

#[test]
fn what_was_stored_before_the_disk_was_full_is_intact() {
    let Some(disk) = Tmpfs::mount("2m") else { return };
    let path = disk.path().join("w.db");
    let mut store = Sqlite::open(&path).unwrap();
    let run = store.begin(&header()).unwrap();
    let batch = |n: u64| Batch {
        heartbeat_ns: STARTED_NS + n,
        outliers: (0..100).map(outlier).collect(),
        ..full_batch()
    };
    let mut stored = 0;
    let error = loop {
        match store.append(run, &batch(stored + 1)) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 1000, "2 MB cannot hold that");
    };
    assert!(matches!(error, StoreError::DiskFull(_)), "{error}");
    assert!(error.to_string().starts_with(&format!("{}: no space left", path.display())));
    assert!(stored >= 3, "{stored}");

    let intact = |store: &Sqlite| {
        let loaded = store.load(run).unwrap();
        assert_eq!(loaded.heartbeat_ns, STARTED_NS + stored);
        assert_eq!(loaded.outlier_count, stored * 100);
        assert_eq!(loaded.losses.seen.len() as u64, stored);
    };
    intact(&store);
    let error = store.append(run, &batch(0)).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull(_)), "again: {error}");
    intact(&Sqlite::open_read_only(&path).unwrap());
    drop(store);
    intact(&Sqlite::open_read_only(&path).unwrap());

    // A new store there is refused in the same words.
    let error = Sqlite::open(&disk.path().join("second.db")).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull(_)), "{error}");

    // With space again it goes on.
    let more = std::process::Command::new("mount")
        .args(["-o", "remount,size=16m"])
        .arg(disk.path())
        .status();
    assert!(more.unwrap().success());
    let mut store = Sqlite::open(&path).unwrap();
    intact(&store);
    store.append(run, &batch(stored + 1)).unwrap();
    store.finish(run, &end()).unwrap();
    assert_eq!(store.load(run).unwrap().outlier_count, (stored + 1) * 100);
    let check: String = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}
