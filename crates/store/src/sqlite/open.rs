//! Opens a store for writing or for reading, and makes those that are gone when they are dropped.

use std::path::{Path, PathBuf};

use model::RunId;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::guard::{self, Found};
use super::{Sqlite, import, schema, space};
use crate::run_file::RunFileError;
use crate::{StoreError, location};

/// Pages in memory. Outliers come in no order of their length: their index has to stay there.
const CACHE_KIB: i64 = 8 * 1024;

/// Where a temporary store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporary {
    /// In a file of its own, without a name, and in memory as long as it is small.
    InFile,
    /// In memory only.
    InMemory,
}

impl Sqlite {
    /// Opens a store for recording and for all else. Makes the file and its folder if they are not
    /// there, and brings the schema up to date.
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        let path = absolute(path)?;
        location::create(&path)?;
        if guard::check(&path)? == Found::Store {
            guard::check_pages(&path)?;
        }
        match open_for_writing(&path) {
            Ok((conn, version)) => {
                guard::refuse_newer(&path, version)?;
                let identity = guard::identity_of(&path);
                Ok(Sqlite { path, conn, identity })
            }
            // The file can be opened, as the guard has seen: it is its folder that is read-only.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
                Err(StoreError::ReadOnly(path))
            }
            Err(error) => Err(StoreError::of_sqlite(&path, error)),
        }
    }

    /// Opens a store that is there for reading; it may be read-only and in a read-only folder.
    pub fn open_read_only(path: &Path) -> Result<Sqlite, StoreError> {
        match Sqlite::only_read(path) {
            // A writer that was killed while it made the store has left what only a writer can put
            // in order.
            Err(StoreError::LogInReadOnlyFolder(path)) if guard::may_write_beside(&path) => {
                drop(Sqlite::open(&path)?);
                Sqlite::only_read(&path)
            }
            opened => opened,
        }
    }

    fn only_read(path: &Path) -> Result<Sqlite, StoreError> {
        let path = absolute(path)?;
        if guard::check(&path)? == Found::Nothing {
            return Err(StoreError::Missing(path));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = open_for_reading(Connection::open_with_flags(&path, flags));
        let (conn, version) = match opened {
            // Where SQLite can make no -shm file, nobody can be writing either.
            Err(error) if needs_folder(&error) && guard::has_log(&path) => {
                return Err(StoreError::LogInReadOnlyFolder(path));
            }
            Err(error) if needs_folder(&error) => open_for_reading(guard::open_immutable(&path)),
            opened => opened,
        }
        .map_err(|error| StoreError::of_sqlite(&path, error))?;
        guard::refuse_newer(&path, version)?;
        if version < schema::MIGRATIONS.len() {
            // An older whylag wrote it: what is read below has to be there first.
            drop(conn);
            drop(Sqlite::open(&path)?);
            return Sqlite::only_read(&path);
        }
        Ok(Sqlite { path, conn, identity: None })
    }

    /// Opens a store that has only the run of this file, and is gone when it is dropped: large ones
    /// lie in a file without a name, where SQLite keeps its temporary data (`SQLITE_TMPDIR`,
    /// /var/tmp). The number of the run is that which it had where it comes from.
    pub fn open_run_file(path: &Path) -> Result<(Sqlite, RunId), RunFileError> {
        let failed = |error| StoreError::of_sqlite(path, error);
        let conn = open_temporary(Temporary::InFile).map_err(failed)?;
        let mut store = Sqlite { path: path.to_owned(), conn, identity: None };
        let run =
            import::import_alone(&mut store.conn, path).map_err(|error| error.of_store(path))?;
        Ok((store, run))
    }

    /// An empty store that is gone when it is dropped, named `path` in errors; in memory only, or
    /// as [`Sqlite::open_run_file`] does it.
    pub fn temporary(path: &Path, place: Temporary) -> Result<Sqlite, StoreError> {
        let path = path.to_owned();
        let conn = open_temporary(place).map_err(|error| StoreError::of_sqlite(&path, error))?;
        Ok(Sqlite { path, conn, identity: None })
    }
}

/// SQLite takes some relative names (`:memory:`, `file:...`) for more than a name.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path)
        .map_err(|source| StoreError::Unusable { path: path.to_owned(), source })
}

fn open_for_writing(path: &Path) -> rusqlite::Result<(Connection, usize)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    if conn.is_readonly("main")? {
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(rusqlite::Error::SqliteFailure(error, None));
    }
    set_up(&mut conn)?;
    if schema::version(&conn)? == 0 {
        space::prepare(&conn)?;
    }
    let version = schema::migrate(&mut conn, schema::MIGRATIONS)?;
    schema::use_write_ahead_log(&conn)?;
    // With a log this risks the last batches in a power cut, never the file.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok((conn, version))
}

fn open_temporary(place: Temporary) -> rusqlite::Result<Connection> {
    let name = match place {
        Temporary::InFile => "",
        Temporary::InMemory => ":memory:",
    };
    let mut conn = Connection::open(name)?;
    set_up(&mut conn)?;
    schema::migrate(&mut conn, schema::MIGRATIONS)?;
    // Nobody needs what is left of it when something fails.
    conn.pragma_update(None, "journal_mode", "off")?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(conn)
}

fn open_for_reading(opened: rusqlite::Result<Connection>) -> rusqlite::Result<(Connection, usize)> {
    let mut conn = opened?;
    set_up(&mut conn)?;
    let version = schema::version(&conn)?;
    Ok((conn, version))
}

fn set_up(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.busy_handler(Some(schema::wait_while_busy))?;
    // As many statements as `write` and `read` have.
    conn.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// SQLite wanted to make a -wal or -shm file and could not.
fn needs_folder(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    /// As a writer leaves it that is killed before its log is the one that goes on: pages were
    /// changed, and what they were is in a -journal.
    #[test]
    fn a_store_whose_writer_was_killed_in_a_transaction_is_put_in_order_by_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("whylag.db"), folder.path().join("copy.db"));
        drop(Sqlite::open(&path).unwrap());
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(
            "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE;
             CREATE TABLE large AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
             WHERE i < 1000) SELECT i, zeroblob(1000) FROM n;",
        )
        .unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let journal = |path: &Path| path.with_extension("db-journal");
        std::fs::copy(journal(&path), journal(&copy)).unwrap();
        assert!(guard::has_log(&copy));
        assert_eq!(Sqlite::open_read_only(&copy).unwrap().runs().unwrap(), []);
        assert!(!guard::has_log(&copy));
    }

    #[test]
    fn an_older_store_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whylag.db");
        let mut conn = Connection::open(&path).unwrap();
        schema::migrate(&mut conn, &schema::MIGRATIONS[..1]).unwrap();
        drop(conn);
        let store = Sqlite::open_read_only(&path).unwrap();
        assert!(store.runs().unwrap().is_empty());
        assert_eq!(schema::version(&store.conn).unwrap(), schema::MIGRATIONS.len());
    }
}
