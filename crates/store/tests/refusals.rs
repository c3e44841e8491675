//! Files that are no store of ours, or that must not or cannot be written, stay as they are.

#![allow(clippy::unwrap_used, reason = "this is the test")]

mod common;

use std::fs;
use std::path::Path;

use common::*;
use model::*;
use rusqlite::Connection;
use store::{Sqlite, Store, StoreError};

/// Opens `path` both ways, checks that both fail with one line that names it, and that nothing in
/// its folder has changed. The error of opening it for writing.
fn refused(path: &Path) -> StoreError {
    let before = contents(path.parent().unwrap());
    let reading = Sqlite::open_read_only(path).unwrap_err();
    let writing = Sqlite::open(path).unwrap_err();
    for error in [&reading, &writing] {
        let line = error.to_string();
        assert!(line.starts_with(&format!("{}: ", path.display())), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
    assert!(contents(path.parent().unwrap()) == before, "something was touched: {writing}");
    writing
}

/// As `refused`, for damage that only writers look for.
fn refused_for_writing(path: &Path) -> StoreError {
    let before = contents(path.parent().unwrap());
    let error = Sqlite::open(path).unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    assert!(contents(path.parent().unwrap()) == before, "something was touched: {error}");
    error
}

fn filled_store(path: &Path) -> RunId {
    store_with(path, 2000)
}

fn store_with(path: &Path, outliers: u64) -> RunId {
    let mut store = Sqlite::open(path).unwrap();
    let run = store.begin(&header()).unwrap();
    let mut batch = full_batch();
    batch.outliers = (0..outliers).map(outlier).collect();
    store.append(run, &batch).unwrap();
    store.finish(run, &end()).unwrap();
    run
}

#[test]
fn foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    for content in [b"x".as_slice(), b"SQLite format 3\0", &[0; 8192], &b"text\n".repeat(5000)] {
        fs::write(&path, content).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    }
    fs::remove_file(&path).unwrap();

    for (journal, id) in [("delete", 0), ("delete", 42), ("wal", 42)] {
        let other = Connection::open(&path).unwrap();
        other.pragma_update(None, "journal_mode", journal).unwrap();
        other.execute_batch("CREATE TABLE runs (id)").unwrap();
        other.pragma_update(None, "application_id", id).unwrap();
        drop(other);
        let error = refused(&path);
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("another application"), "{error}");
        fs::remove_file(&path).unwrap();
    }

    fs::create_dir(&path).unwrap();
    let error = Sqlite::open(&path).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    let error = Sqlite::open(&path.join("w.db/w.db")).map(|_| ());
    assert!(error.is_ok(), "missing folders are made");
}

#[test]
fn a_newer_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    filled_store(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Newer { found: 99, known: 13, .. }), "{error}");
}

#[test]
fn a_damaged_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    filled_store(&path);
    let whole = fs::read(&path).unwrap();
    let damaged =
        |error: StoreError| assert!(matches!(error, StoreError::Damaged { .. }), "{error}");

    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    damaged(refused(&path));

    let mut rotten = whole.clone();
    let middle = rotten.len() / 2 / 4096 * 4096;
    rotten[middle..middle + 4096].fill(0xa5);
    fs::write(&path, &rotten).unwrap();
    damaged(refused_for_writing(&path));

    let mut schemaless = whole.clone();
    schemaless[100..4096].fill(0);
    fs::write(&path, &schemaless).unwrap();
    damaged(refused_for_writing(&path));

    fs::write(&path, &whole).unwrap();
    assert_eq!(Sqlite::open(&path).unwrap().runs().unwrap().len(), 1);
}

#[test]
fn reading_damage_gives_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let run = filled_store(&path);
    for (table, change) in [
        ("threads", "open = 'nothing'"),
        ("threads", "tid = tid + (1 << 40)"),
        ("seconds", "buckets = x'ffff'"),
        ("seconds", "precision = 200"),
        ("outliers", "detail = '{'"),
        ("outliers", "kind = 'strange'"),
        ("runs", "target = '[]'"),
        ("cost", "probes = ''"),
    ] {
        let copy = folder.path().join("copy.db");
        fs::copy(&path, &copy).unwrap();
        Connection::open(&copy)
            .unwrap()
            .execute(&format!("UPDATE {table} SET {change}"), [])
            .unwrap();
        let error = Sqlite::open_read_only(&copy).unwrap().load(run).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{change}: {error}");
    }
}

/// Whatever single page of the file is garbage: an error or a run, no panic, and no change of the
/// file by reading it.
#[test]
fn no_garbage_page_makes_a_reader_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    // Each table has a page; more of them are no other case, and each page is a reading.
    let run = store_with(&path, 100);
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    for page in (0..whole.len()).step_by(4096) {
        let mut rotten = whole.clone();
        for (n, byte) in rotten[page..page + 4096].iter_mut().enumerate().skip(100) {
            *byte = (n * 31 + page / 4096 * 7) as u8;
        }
        fs::write(&path, &rotten).unwrap();
        let loaded = Sqlite::open_read_only(&path).and_then(|store| store.load(run));
        refused += u32::from(loaded.is_err());
        assert!(fs::read(&path).unwrap() == rotten);
    }
    assert!(refused > 3, "{refused}");
}

#[test]
fn reading_what_is_not_there_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let error = Sqlite::open_read_only(&folder.path().join("a/w.db")).unwrap_err();
    assert!(matches!(error, StoreError::Missing(_)), "{error}");
    assert_eq!(contents(folder.path()), []);
}

#[test]
fn an_empty_file_becomes_a_store_when_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    fs::write(&path, "").unwrap();
    let error = Sqlite::open_read_only(&path).unwrap_err();
    assert!(matches!(error, StoreError::Missing(_)), "{error}");
    assert_eq!(contents(folder.path()), [("w.db".to_owned(), vec![])]);
    let run = filled_store(&path);
    assert_eq!(Sqlite::open_read_only(&path).unwrap().load(run).unwrap().outlier_count, 2000);
}

#[test]
fn a_store_on_a_read_only_file_system_can_be_read_but_not_written() {
    let Some(disk) = Tmpfs::mount("16m") else { return };
    let path = disk.path().join("w.db");
    let run = filled_store(&path);
    disk.make_read_only();
    let before = contents(disk.path());
    assert_eq!(before.len(), 1, "no log to read");

    let store = Sqlite::open_read_only(&path).unwrap();
    assert_eq!(store.load(run).unwrap().outlier_count, 2000);
    for path in [path.clone(), disk.path().join("new.db"), disk.path().join("new/w.db")] {
        let error = Sqlite::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly(_)), "{error}");
    }
    assert!(contents(disk.path()) == before);
}

#[test]
fn a_log_on_a_read_only_file_system_is_read_or_named() {
    let Some(disk) = Tmpfs::mount("16m") else { return };
    let path = disk.path().join("w.db");
    let run = filled_store(&path);
    let other = tempfile::tempdir().unwrap();
    // Copies of a store in use are what a killed recorder would leave.
    let mut store = Sqlite::open(&path).unwrap();
    store.append(run, &full_batch()).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let name = |base: &str| format!("{base}{suffix}");
        fs::copy(disk.path().join(name("w.db")), disk.path().join(name("killed.db"))).unwrap();
        if suffix != "-shm" {
            fs::copy(disk.path().join(name("w.db")), disk.path().join(name("copied.db"))).unwrap();
        }
    }
    drop(store);
    disk.make_read_only();

    let killed = Sqlite::open_read_only(&disk.path().join("killed.db")).unwrap();
    assert_eq!(killed.load(run).unwrap().outlier_count, 2002, "the log is read");
    let error = Sqlite::open_read_only(&disk.path().join("copied.db")).unwrap_err();
    assert!(matches!(error, StoreError::LogInReadOnlyFolder(_)), "{error}");
    for suffix in ["", "-wal"] {
        let name = format!("copied.db{suffix}");
        fs::copy(disk.path().join(&name), other.path().join(&name)).unwrap();
    }
    let moved = Sqlite::open_read_only(&other.path().join("copied.db")).unwrap();
    assert_eq!(moved.load(run).unwrap().outlier_count, 2002, "as the error advises");
}
