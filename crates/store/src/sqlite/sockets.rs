//! Queues and drops of sockets, written and read.

use model::{Drops, QueueSecond, RunId, Sockets};
use rusqlite::{Connection, Transaction, params};

use super::columns::{Json, U64};
use super::read::all;

pub(super) fn put(tx: &Transaction<'_>, run: RunId, sockets: &Sockets) -> rusqlite::Result<()> {
    let mut add = tx.prepare_cached(
        "INSERT INTO queue_seconds (run, start_ns, inode, detail) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for second in &sockets.queues {
        let inode = U64(second.socket.inode);
        add.execute(params![run.0, U64(second.start_ns), inode, Json(second)])?;
    }
    let mut add = tx.prepare_cached(
        "INSERT INTO drops (run, first_ns, count, detail) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for drops in &sockets.drops {
        add.execute(params![run.0, U64(drops.first_ns), U64(drops.count), Json(drops)])?;
    }
    Ok(())
}

pub(super) fn load(conn: &Connection, run: RunId) -> rusqlite::Result<Sockets> {
    let queues = "SELECT detail FROM queue_seconds WHERE run = ?1 ORDER BY start_ns, rowid";
    let drops = "SELECT detail FROM drops WHERE run = ?1 ORDER BY first_ns, rowid";
    Ok(Sockets {
        queues: all(conn, queues, [run.0], |row| Ok(row.get::<_, Json<QueueSecond>>(0)?.0))?,
        drops: all(conn, drops, [run.0], |row| Ok(row.get::<_, Json<Drops>>(0)?.0))?,
    })
}
