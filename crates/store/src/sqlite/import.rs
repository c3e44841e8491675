//! Takes a run from a file.
//!
//! A store has other writers: an import never keeps it locked for long. The file is read through
//! first, so that one that is damaged leaves nothing behind. Then its batches are stored a few at a
//! time, as those of a run that nobody sees (`runs.importer`) until the last one is there. What a
//! killed import left is removed by the next one.

use std::path::Path;
use std::time::Duration;

use model::{Batch, Origin, RunId};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::columns::Json;
use super::read::{self, all};
use super::{Failed, proofs, write};
use crate::recorder::Recorder;
use crate::run_file::{Ending, Next, Reader};

/// So many rows are stored at a time: some 30 ms.
const ROWS: usize = 2_000;

/// Text after which no more of it is waited with, bytes: it takes some times as much in memory.
const TEXT: usize = 8 << 20;

/// Time for others that wait for the store. They look more often than that ([`set_up`](super::open)).
const PAUSE: Duration = Duration::from_millis(5);

/// Into a store of its own, which is gone if that fails: all in one transaction, under the number
/// that the run has in the store where it comes from.
pub(super) fn import_alone(conn: &mut Connection, path: &Path) -> Result<RunId, Failed> {
    let mut file = Reader::open(path)?;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let recorder = Recorder::elsewhere(file.header.recorder_pid);
    let run = write::put_run(&tx, Some(file.run), &file.header, &recorder)?;
    loop {
        match file.next()? {
            Next::Batch(batch) => write::put_parts(&tx, run, &batch)?,
            Next::Ending(ending) => {
                put_ending(&tx, run, &ending)?;
                break;
            }
        }
    }
    tx.commit()?;
    Ok(run)
}

/// Into a store that others use.
pub(super) fn import(conn: &mut Connection, path: &Path) -> Result<RunId, Failed> {
    let mut file = Reader::open(path)?;
    while let Next::Batch(_) = file.next()? {}
    discard_abandoned(conn)?;

    let mut file = Reader::open(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let run = begin(conn, &file, &Origin { file: name, number: file.run })?;
    let stored = fill(conn, run, &mut file);
    if stored.is_err() {
        discard(conn, run)?;
    }
    stored.map(|()| run)
}

fn immediate(conn: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    conn.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn begin(conn: &mut Connection, file: &Reader, origin: &Origin) -> rusqlite::Result<RunId> {
    let tx = immediate(conn)?;
    let recorder = Recorder::elsewhere(file.header.recorder_pid);
    let run = write::put_run(&tx, None, &file.header, &recorder)?;
    tx.execute(
        "UPDATE runs SET origin = ?2, importer = ?3 WHERE id = ?1",
        params![run.0, Json(origin), Json(Recorder::of_pid(std::process::id()))],
    )?;
    tx.commit()?;
    Ok(run)
}

fn fill(conn: &mut Connection, run: RunId, file: &mut Reader) -> Result<(), Failed> {
    loop {
        // Read before the store is locked.
        let (batches, ending) = some(file)?;
        let tx = immediate(conn)?;
        for batch in &batches {
            write::put_batch(&tx, run, batch)?;
        }
        if let Some(ending) = &ending {
            put_ending(&tx, run, ending)?;
            tx.execute("UPDATE runs SET importer = NULL WHERE id = ?1", [run.0])?;
        }
        tx.commit()?;
        if ending.is_some() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}

/// The next batches, until they have enough rows.
fn some(file: &mut Reader) -> Result<(Vec<Batch>, Option<Ending>), Failed> {
    let mut batches = Vec::new();
    let (mut rows, mut text) = (0, 0);
    while rows < ROWS && text < TEXT {
        match file.next()? {
            Next::Batch(batch) => {
                rows += rows_of(&batch);
                text += file.text_of_last();
                batches.push(*batch);
            }
            Next::Ending(ending) => return Ok((batches, Some(ending))),
        }
    }
    Ok((batches, None))
}

/// What takes long to store: a histogram and a stack are more than a row.
fn rows_of(batch: &Batch) -> usize {
    let large = batch.seconds.len() + batch.messages.seconds.len() + batch.stacks.len();
    let small = batch.outliers.len() + batch.events.len() + batch.threads.len();
    let messages = batch.messages.slow.len() + batch.messages.fast.len();
    // Of all the rest an exported batch has one piece.
    200 + 5 * large + small + messages
}

fn put_ending(tx: &Transaction<'_>, run: RunId, ending: &Ending) -> rusqlite::Result<()> {
    if let Some(end) = &ending.end {
        write::finish(tx, run, end)?;
    }
    write::replace_findings(tx, run, &ending.findings)
}

/// Removes a run; false if it is being recorded. Hidden first, as one that is being imported: if
/// this is killed, the next one, or an import, removes the rest.
pub(super) fn forget(conn: &mut Connection, run: RunId) -> rusqlite::Result<bool> {
    discard_abandoned(conn)?;
    let tx = immediate(conn)?;
    if read::is_recording(&tx, run)? {
        return Ok(false);
    }
    tx.execute(
        "UPDATE runs SET importer = ?2 WHERE id = ?1",
        params![run.0, Json(Recorder::of_pid(std::process::id()))],
    )?;
    tx.commit()?;
    discard(conn, run)?;
    Ok(true)
}

/// Removes what killed imports left.
fn discard_abandoned(conn: &mut Connection) -> rusqlite::Result<()> {
    let sql = "SELECT id, importer FROM runs WHERE importer IS NOT NULL";
    let all =
        all(conn, sql, [], |row| Ok((RunId(row.get(0)?), row.get::<_, Json<Recorder>>(1)?.0)))?;
    for (run, importer) in all {
        if !importer.is_alive() {
            discard(conn, run)?;
        }
    }
    Ok(())
}

/// Tables with the rows of a run that may be many, and what belongs to these rows.
const LARGE: [(&str, Option<(&str, &str)>); 17] = [
    ("facts", None),
    ("capabilities", None),
    ("threads", Some(("accounts", "thread"))),
    ("seconds", None),
    ("outliers", None),
    ("events", None),
    ("stacks", None),
    ("frames", None),
    ("sums", None),
    ("losses", None),
    ("message_seconds", None),
    ("messages", None),
    ("queue_seconds", None),
    ("drops", None),
    ("presences", None),
    ("cost", None),
    ("ticks", None),
];

/// Those with few, which have no rowid.
const SMALL: [&str; 4] = ["processes", "findings", "results", "traced_programs"];

/// Removes a run, some rows at a time.
fn discard(conn: &mut Connection, run: RunId) -> rusqlite::Result<()> {
    for (table, parts) in LARGE {
        let some = format!("SELECT rowid FROM {table} WHERE run = ?1 LIMIT {ROWS}");
        loop {
            let tx = immediate(conn)?;
            if let Some((parts, key)) = parts {
                tx.execute(&format!("DELETE FROM {parts} WHERE {key} IN ({some})"), [run.0])?;
            }
            let sql = format!("DELETE FROM {table} WHERE rowid IN ({some})");
            let removed = tx.execute(&sql, [run.0])?;
            tx.commit()?;
            if removed < ROWS {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
    let tx = immediate(conn)?;
    for table in SMALL {
        tx.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [run.0])?;
    }
    proofs::forget(&tx, run)?;
    tx.execute("DELETE FROM runs WHERE id = ?1", [run.0])?;
    tx.commit()
}
