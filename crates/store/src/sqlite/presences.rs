//! When programs ran, written and read.

use model::{Presence, RunId};
use rusqlite::{Connection, Transaction, params};

use super::columns::{Json, U64};
use super::read::{all, u64_at};

pub(super) fn put(
    tx: &Transaction<'_>,
    run: RunId,
    presences: &[Presence],
) -> rusqlite::Result<()> {
    let mut add = tx.prepare_cached(
        "INSERT INTO presences (run, start_ns, tgid, comm, pieces) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for one in presences {
        add.execute(params![run.0, U64(one.start_ns), one.tgid, one.comm, Json(&one.pieces)])?;
    }
    Ok(())
}

pub(super) fn load(conn: &Connection, run: RunId) -> rusqlite::Result<Vec<Presence>> {
    let sql = "SELECT start_ns, tgid, comm, pieces FROM presences
               WHERE run = ?1 ORDER BY start_ns, rowid";
    all(conn, sql, [run.0], |row| {
        Ok(Presence {
            start_ns: u64_at(row, 0)?,
            tgid: row.get(1)?,
            comm: row.get(2)?,
            pieces: row.get::<_, Json<_>>(3)?.0,
        })
    })
}
