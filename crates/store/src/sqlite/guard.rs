//! Looks at a file before it is opened as a store, and never changes it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::schema::{APPLICATION_ID, MIGRATIONS, version, wait_while_busy};
use crate::StoreError;

/// What is at a path, if it is nothing that has to be refused.
#[derive(PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Store,
}

/// Files up to this size are checked page by page (some 30 ms) before they are written to. Damage
/// deep in a larger one is noticed only where it is read.
const FULL_CHECK_BYTES: u64 = 32 << 20;

/// Refuses what is not a store of ours, or one that is damaged or newer than we know.
///
/// All is read through SQLite: a descriptor of our own would, when closed, drop the locks that
/// other connections of this process hold on the file.
pub(super) fn check(path: &Path) -> Result<Found, StoreError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(source) => return Err(StoreError::Unusable { path: path.to_owned(), source }),
    };
    if !metadata.is_file() {
        return Err(StoreError::Foreign { path: path.to_owned(), what: "not a regular file" });
    }
    if let Err(Errno::ACCESS) = accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS) {
        return Err(StoreError::Unreadable(path.to_owned()));
    }
    if metadata.len() == 0 {
        return Ok(Found::Nothing);
    }
    // Asked before and after: another process may be making the store, or changing it, meanwhile.
    let had_log = has_log(path);
    let conn = open_immutable(path).map_err(|error| StoreError::of_sqlite(path, error))?;
    match identity(&conn) {
        // Its recorder may have died while it moved pages from the log into the file. Then the log
        // has them still, and SQLite repairs the file from it.
        Err(error) if is_corrupt(&error) && (had_log || has_log(path)) => return Ok(Found::Store),
        Err(error) => return Err(StoreError::of_sqlite(path, error)),
        Ok((APPLICATION_ID, version)) => refuse_newer(path, version)?,
        // A store that another process is just making.
        Ok((0, 0)) if is_empty(&conn) => return Ok(Found::Nothing),
        Ok(_) => {
            let what = "an SQLite file of another application";
            return Err(StoreError::Foreign { path: path.to_owned(), what });
        }
    }
    Ok(Found::Store)
}

/// Refuses a store that is damaged anywhere. Readers do without: they get what can still be read.
pub(super) fn check_pages(path: &Path) -> Result<(), StoreError> {
    if !is_small(path) {
        return Ok(());
    }
    let mut checked = Ok(());
    if !in_use(path) {
        checked = open_immutable(path).and_then(|conn| quick_check(&conn));
        if checked.is_ok() {
            return Ok(());
        }
    }
    // Asked again: another process may have begun to use it just now.
    if in_use(path) {
        checked = open_shared(path).and_then(|conn| quick_check(&conn));
    }
    match checked {
        Err(error) if is_corrupt(&error) => Err(StoreError::of_sqlite(path, error)),
        // Whatever else is wrong, the one who opens it for writing is told.
        _ => Ok(()),
    }
}

/// True if a check of all pages takes no time that anybody notices.
pub(super) fn is_small(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.len() <= FULL_CHECK_BYTES)
}

/// The file at a path: what tells it from another one that comes to have its name.
pub(super) fn identity_of(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Opens the file with its log, beside others that use it. It is not changed: who may only read
/// moves nothing from the log into the file.
pub(super) fn open_shared(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_handler(Some(wait_while_busy))?;
    Ok(conn)
}

/// Refuses a store of a version that we do not know.
pub(super) fn refuse_newer(path: &Path, found: usize) -> Result<(), StoreError> {
    let known = MIGRATIONS.len();
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

/// Opens the file alone, without its log, and without making any file next to it. Right only while
/// nobody writes.
pub(super) fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, flags)
}

/// True if files can be made beside the store.
pub(super) fn may_write_beside(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new("/"));
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// True if something was written that is not in the file itself yet.
pub(super) fn has_log(path: &Path) -> bool {
    log_files(path).iter().any(|log| fs::metadata(log).is_ok_and(|log| log.len() > 0))
}

/// True if another process may be changing the file under our eyes, or was killed while it could.
fn in_use(path: &Path) -> bool {
    log_files(path).iter().any(|log| log.exists())
}

pub(super) fn log_files(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-journal"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

fn identity(conn: &Connection) -> rusqlite::Result<(i32, usize)> {
    let id = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok((id, version(conn)?))
}

/// True of a whole file without a table.
fn is_empty(conn: &Connection) -> bool {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    number("PRAGMA page_count").is_ok_and(|pages| pages > 0)
        && number("SELECT count(*) FROM sqlite_schema").is_ok_and(|tables| tables == 0)
}

pub(super) fn quick_check(conn: &Connection) -> rusqlite::Result<()> {
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" {
        return Ok(());
    }
    let detail = verdict.lines().last().unwrap_or_default().to_owned();
    Err(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
        Some(detail),
    ))
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}
