//! Whether what was stored is there.

use std::path::Path;

use model::{Batch, RunId};
use rusqlite::Connection;

use crate::StoreError;

/// How much was stored of a run: what is only ever added, never replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Intervals kept whole.
    pub outliers: u64,
    /// Rare events.
    pub events: u64,
    /// Histograms of a second.
    pub seconds: u64,
}

impl Rows {
    /// Adds what a batch has.
    pub fn add(&mut self, batch: &Batch) {
        self.outliers += batch.outliers.len() as u64;
        self.events += batch.events.len() as u64;
        self.seconds += batch.seconds.len() as u64;
    }
}

/// What is there. The columns are in no index, and their length is asked for: so each row is read.
pub(super) fn rows(conn: &Connection, run: RunId) -> rusqlite::Result<Rows> {
    conn.query_row("SELECT 1 FROM runs WHERE id = ?1", [run.0], |_| Ok(()))?;
    let count = |table: &str, column: &str| {
        let sql = format!("SELECT count(nullif(length({column}), -1)) FROM {table} WHERE run = ?1");
        conn.query_row(&sql, [run.0], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    Ok(Rows {
        outliers: count("outliers", "detail")?,
        events: count("events", "detail")?,
        seconds: count("seconds", "max")?,
    })
}

pub(super) fn compare(path: &Path, expected: &Rows, found: &Rows) -> Result<(), StoreError> {
    let all = |rows: &Rows| rows.outliers + rows.events + rows.seconds;
    if expected == found {
        return Ok(());
    }
    let what = format!("it has {} of {} rows that were stored", all(found), all(expected));
    Err(StoreError::Damaged { path: path.to_owned(), what })
}
