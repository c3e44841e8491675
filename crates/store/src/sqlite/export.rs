//! Takes a whole run to a file, a piece at a time.
//!
//! What [`load`](super::read::load) gives whole is in memory here, too; of the rest, which has no
//! bound, only one piece. Everything is written in the order in which it is read from a store:
//! stored again in this order, it is read in the same one.

use std::io::{self, Write};

use model::{Batch, Message, RunId, StackId};
use rusqlite::{Connection, Params, Result, Row};

use super::columns::{Json, U64};
use super::read::all;
use super::read_parts::OUTLIER_COLUMNS;
use super::{
    Failed, messages, presences, read, read_parts as parts, sockets, stacks, sums, threads, timers,
};
use crate::run_file::{FORMAT_VERSION, WITHOUT_TICKS, Writer};

/// Rows of a piece.
const ROWS: usize = 200;

pub(super) fn export(
    conn: &Connection,
    run: RunId,
    out: impl Write,
) -> std::result::Result<(), Failed> {
    // One transaction: a recorder may be adding to the run meanwhile.
    let tx = conn.unchecked_transaction()?;
    let row = read::one(&tx, run)?;
    let version = if timers::has_ticks(&tx, run)? { FORMAT_VERSION } else { WITHOUT_TICKS };
    let file = Writer::new(out, version, run, &row.header)?;
    let mut pieces = Pieces { file, conn: &tx, run };
    pieces.file.batch(&Batch {
        heartbeat_ns: row.heartbeat_ns,
        cost: Some(parts::cost(&tx, run)?),
        bench: parts::result(&tx, run, "bench")?,
        ..Batch::default()
    })?;
    put_timers(&mut pieces)?;
    pieces.put(parts::facts(&tx, run)?, |batch| &mut batch.facts)?;
    pieces.put(parts::capabilities(&tx, run)?, |batch| &mut batch.capabilities)?;
    pieces.select(parts::PROCESSES, [run.0], parts::process, |batch| &mut batch.processes)?;
    put_threads(&mut pieces)?;
    pieces.put(read::seconds(&tx, run)?, |batch| &mut batch.seconds)?;
    pieces.put(parts::losses(&tx, run)?, |batch| &mut batch.losses)?;
    pieces.put(presences::load(&tx, run)?, |batch| &mut batch.presences)?;
    put_sums(&mut pieces)?;
    put_sockets_and_messages(&mut pieces)?;
    put_unbounded(&mut pieces)?;
    Ok(pieces.file.finish(row.end, read::findings_of(&tx, run)?)?)
}

fn put_timers<W: Write>(pieces: &mut Pieces<'_, W>) -> std::result::Result<(), Failed> {
    let file = &mut pieces.file;
    timers::each(pieces.conn, pieces.run, |batch| Ok(file.batch(batch)?))
}

/// All of them, however many there are.
fn put_threads<W: Write>(pieces: &mut Pieces<'_, W>) -> std::result::Result<(), Failed> {
    let mut batch = Batch::default();
    let mut written = Ok(());
    threads::each(pieces.conn, pieces.run, |_, thread| {
        batch.threads.push(thread);
        if batch.threads.len() >= ROWS && written.is_ok() {
            written = pieces.file.batch(&batch);
            batch.threads.clear();
        }
        Ok(())
    })?;
    written?;
    Ok(pieces.file.batch(&batch)?)
}

fn put_sums<W: Write>(pieces: &mut Pieces<'_, W>) -> std::result::Result<(), Failed> {
    let mut select = pieces.conn.prepare(sums::OF_RUN)?;
    let mut rows = select.query([pieces.run.0])?;
    loop {
        let mut batch = Batch::default();
        let mut number = 0;
        while number < ROWS
            && let Some(row) = rows.next()?
        {
            sums::add(&mut batch.sums, row)?;
            number += 1;
        }
        if number == 0 {
            return Ok(());
        }
        pieces.file.batch(&batch)?;
    }
}

fn put_sockets_and_messages<W: Write>(
    pieces: &mut Pieces<'_, W>,
) -> std::result::Result<(), Failed> {
    let (conn, run) = (pieces.conn, pieces.run);
    let sockets = sockets::load(conn, run)?;
    pieces.put(sockets.queues, |batch| &mut batch.sockets.queues)?;
    pieces.put(sockets.drops, |batch| &mut batch.sockets.drops)?;
    let messages = messages::load(conn, run)?;
    pieces.put(messages.programs, |batch| &mut batch.messages.programs)?;
    pieces.put(messages.seconds, |batch| &mut batch.messages.seconds)?;
    pieces.put(messages.fast, |batch| &mut batch.messages.fast)
}

/// What a run may have millions of, and [`load`](super::read::load) gives a part of.
fn put_unbounded<W: Write>(pieces: &mut Pieces<'_, W>) -> std::result::Result<(), Failed> {
    let (conn, run) = (pieces.conn, pieces.run);
    let stacks: Vec<StackId> =
        all(conn, "SELECT stack FROM stacks WHERE run = ?1 ORDER BY id", [run.0], |row| {
            Ok(StackId(row.get::<_, U64>(0)?.0))
        })?;
    let stacks = stacks.into_iter().filter_map(|id| stacks::one(conn, run, id).transpose());
    pieces.stream(stacks, |batch| &mut batch.stacks)?;
    let outliers = format!(
        "SELECT {OUTLIER_COLUMNS} FROM outliers WHERE run = ?1 ORDER BY duration_ns DESC, rowid"
    );
    pieces.select(&outliers, [run.0], parts::outlier, |batch| &mut batch.outliers)?;
    let events = "SELECT time_ns, kind, tid, tgid, value, detail FROM events
                  WHERE run = ?1 ORDER BY time_ns, rowid";
    pieces.select(events, [run.0], parts::event, |batch| &mut batch.events)?;
    let slow = "SELECT detail FROM messages WHERE run = ?1 AND sample IS NULL
                ORDER BY duration_ns DESC, rowid";
    let message = |row: &Row<'_>| Ok(row.get::<_, Json<Message>>(0)?.0);
    pieces.select(slow, [run.0], message, |batch| &mut batch.messages.slow)
}

/// Writes rows, some in a batch.
struct Pieces<'a, W: Write> {
    file: Writer<W>,
    conn: &'a Connection,
    run: RunId,
}

impl<W: Write> Pieces<'_, W> {
    fn put<T>(
        &mut self,
        rows: Vec<T>,
        part: impl Fn(&mut Batch) -> &mut Vec<T>,
    ) -> std::result::Result<(), Failed> {
        self.stream(rows.into_iter().map(Ok), part)
    }

    fn select<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        row: impl FnMut(&Row<'_>) -> Result<T>,
        part: impl Fn(&mut Batch) -> &mut Vec<T>,
    ) -> std::result::Result<(), Failed> {
        let mut select = self.conn.prepare(sql)?;
        self.stream(select.query_map(params, row)?, part)
    }

    fn stream<T>(
        &mut self,
        mut rows: impl Iterator<Item = Result<T>>,
        part: impl Fn(&mut Batch) -> &mut Vec<T>,
    ) -> std::result::Result<(), Failed> {
        loop {
            let piece: Vec<T> = rows.by_ref().take(ROWS).collect::<Result<_>>()?;
            if piece.is_empty() {
                return Ok(());
            }
            self.put_piece(piece, &part)?;
        }
    }

    /// In one line, or in several if that would be a long one: names of functions may be.
    fn put_piece<T>(
        &mut self,
        rows: Vec<T>,
        part: &impl Fn(&mut Batch) -> &mut Vec<T>,
    ) -> io::Result<()> {
        let mut batch = Batch::default();
        *part(&mut batch) = rows;
        if self.file.short_batch(&batch)? {
            return Ok(());
        }
        let rows = part(&mut batch);
        if rows.len() < 2 {
            return self.file.batch(&batch);
        }
        let second = rows.split_off(rows.len() / 2);
        let first = std::mem::take(rows);
        self.put_piece(first, part)?;
        self.put_piece(second, part)
    }
}
