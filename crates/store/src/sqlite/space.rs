//! How much space runs take, and how it is given back.
//!
//! A new store is made so that free pages can be cut off its end (`auto_vacuum`). One of an earlier
//! whylag is rewritten once, the first time that something is forgotten.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

/// `PRAGMA auto_vacuum`: pages are given back when asked for.
const INCREMENTAL: i64 = 2;

/// Pages given back at a time: some 10 ms.
const PAGES: i64 = 1_000;

/// Time for others that wait for the store.
const PAUSE: Duration = Duration::from_millis(5);

/// What a run has in a store whose writer did not count: rows of about so many bytes each, and the
/// rest.
pub(super) const ESTIMATE: &str = "ifnull(bytes, 100000 + outlier_count * 700 + event_count * 100)";

/// Makes a store of which space can be given back. Only before its first table.
pub(super) fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "auto_vacuum", INCREMENTAL)
}

/// Bytes of the pages in use.
pub(super) fn used(conn: &Connection) -> rusqlite::Result<i64> {
    let value = |name: &str| {
        conn.prepare_cached(&format!("PRAGMA {name}"))?.query_row([], |row| row.get::<_, i64>(0))
    };
    Ok((value("page_count")? - value("freelist_count")?) * value("page_size")?)
}

/// Gives free pages back to the file system.
pub(super) fn give_back(conn: &Connection) -> rusqlite::Result<()> {
    let mode: i64 = conn.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if mode != INCREMENTAL {
        prepare(conn)?;
        conn.execute_batch("VACUUM")?;
    }
    loop {
        let free: i64 = conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        if free == 0 {
            break;
        }
        // It frees a page for each row that is asked for.
        let mut vacuum = conn.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        let left: i64 = conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        if left >= free {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    // The file itself shrinks when the log is moved into it; who reads meanwhile delays that.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).optional()?;
    Ok(())
}
