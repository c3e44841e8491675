//! Messages of traced programs, written and read.

use model::{Message, MessageSecond, Messages, RunId};
use rusqlite::{Connection, Transaction, params};

use super::buckets::{Packer, Unpacker};
use super::columns::{Json, Text, U64};
use super::read::{all, histogram_at, u64_at};
use crate::LOADED_OUTLIERS;

pub(super) fn put(tx: &Transaction<'_>, run: RunId, messages: &Messages) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT OR REPLACE INTO traced_programs (run, program, detail) VALUES (?1, ?2, ?3)",
    )?;
    for program in &messages.programs {
        put.execute(params![run.0, program.program, Json(program)])?;
    }
    let mut packer = Packer::new();
    let mut add = tx.prepare_cached(
        "INSERT INTO message_seconds (run, start_ns, program, flow, metric, precision, sum, min,
                                      max, buckets)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for second in &messages.seconds {
        let histogram = &second.histogram;
        add.execute(params![
            run.0,
            U64(second.start_ns),
            second.program,
            second.flow,
            Text(second.metric),
            histogram.precision(),
            U64(histogram.sum()),
            U64(histogram.min().unwrap_or(0)),
            U64(histogram.max().unwrap_or(0)),
            packer.pack(histogram)?,
        ])?;
    }
    let mut put = tx.prepare_cached(
        "INSERT OR REPLACE INTO messages (run, program, flow, sample, t0_ns, duration_ns, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for message in messages.slow.iter().chain(&messages.fast) {
        put.execute(params![
            run.0,
            message.program,
            message.flow,
            message.sample,
            U64(message.t0_ns),
            U64(message.total_ns()),
            Json(message),
        ])?;
    }
    Ok(())
}

pub(super) fn load(conn: &Connection, run: RunId) -> rusqlite::Result<Messages> {
    let programs = all(
        conn,
        "SELECT detail FROM traced_programs WHERE run = ?1 ORDER BY program",
        [run.0],
        |row| Ok(row.get::<_, Json<_>>(0)?.0),
    )?;
    let mut unpacker = Unpacker::new();
    let seconds = all(
        conn,
        "SELECT start_ns, program, flow, metric, precision, sum, min, max, buckets
         FROM message_seconds WHERE run = ?1 ORDER BY start_ns, rowid",
        [run.0],
        |row| {
            Ok(MessageSecond {
                program: row.get(1)?,
                flow: row.get(2)?,
                metric: row.get::<_, Text<_>>(3)?.0,
                start_ns: u64_at(row, 0)?,
                histogram: histogram_at(row, 4, &mut unpacker)?,
            })
        },
    )?;
    let messages = |rest: &str| -> rusqlite::Result<Vec<Message>> {
        let sql = format!("SELECT detail FROM messages WHERE run = ?1 AND sample IS {rest}");
        all(conn, &sql, params![run.0], |row| Ok(row.get::<_, Json<_>>(0)?.0))
    };
    let slow_count: i64 = conn
        .prepare_cached("SELECT count(*) FROM messages WHERE run = ?1 AND sample IS NULL")?
        .query_row([run.0], |row| row.get(0))?;
    Ok(Messages {
        programs,
        seconds,
        slow: messages(&slowest())?,
        slow_count: slow_count.cast_unsigned(),
        fast: messages("NOT NULL ORDER BY t0_ns, rowid")?,
        calls: Vec::new(),
    })
}

/// The slowest of the run, and those of each flow.
fn slowest() -> String {
    let of_each = Messages::SLOWEST_OF_EACH;
    format!(
        "NULL AND rowid IN (
             SELECT id FROM (
                 SELECT rowid AS id,
                        row_number() OVER (ORDER BY duration_ns DESC, rowid) AS of_all,
                        row_number() OVER (
                            PARTITION BY program, flow ORDER BY duration_ns DESC, rowid) AS of_flow
                 FROM messages WHERE run = ?1 AND sample IS NULL)
             WHERE of_all <= {LOADED_OUTLIERS} OR of_flow <= {of_each})
         ORDER BY duration_ns DESC, rowid"
    )
}
