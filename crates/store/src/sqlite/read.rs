//! Reads runs back.
//!
//! `Err(QueryReturnedNoRows)` means that there is no such run.

use model::{
    Finding, Histogram, Losses, MetricSecond, Origin, Run, RunEnd, RunFigures, RunHeader, RunId,
    RunStatus, RunSummary, Window,
};
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::buckets::{Unpacker, UnreadableBuckets};
use super::columns::{Json, Text, U64};
use super::threads::{self, Told};
use super::{messages, presences, read_parts as parts, sockets, space, stacks, sums, timers};
use crate::recorder::Recorder;

/// A row of `runs`.
pub(super) struct RunRow {
    id: RunId,
    pub header: RunHeader,
    status: RunStatus,
    pub end: Option<RunEnd>,
    pub heartbeat_ns: u64,
    outlier_count: u64,
    event_count: u64,
}

const RUN_COLUMNS: &str = "id, started_unix_ns, started_ns, target, follow, threshold_ns, sampled, \
                           recorder_pid, version, recorder_start, boot_id, ended_ns, exit_status, \
                           end_reason, heartbeat_ns, outlier_count, event_count, labels";

/// Runs that are there for all, unlike those that are being imported.
const SEEN: &str = "importer IS NULL";

pub(super) fn runs(conn: &Connection) -> rusqlite::Result<Vec<RunSummary>> {
    let tx = conn.unchecked_transaction()?;
    let rows = all(
        &tx,
        &format!("SELECT {RUN_COLUMNS}, origin FROM runs WHERE {SEEN} ORDER BY id"),
        [],
        |row| {
            let origin: Option<Json<Origin>> = row.get("origin")?;
            Ok((run_row(row)?, origin.map(|origin| origin.0)))
        },
    )?;
    let summaries = rows.into_iter().map(|(row, origin)| {
        let threads: i64 = tx
            .prepare_cached("SELECT count(*) FROM threads WHERE run = ?1")?
            .query_row([row.id.0], |r| r.get(0))?;
        let others = sums::others(&tx, row.id)?;
        let summed = others.iter().map(|others| others.threads);
        let leading_cause = tx
            .prepare_cached("SELECT cause FROM findings WHERE run = ?1 AND rank = 0")?
            .query_row([row.id.0], |r| r.get(0))
            .optional()?;
        let last_ns = row.end.as_ref().map_or(row.heartbeat_ns, |end| end.ended_ns);
        Ok(RunSummary {
            id: row.id,
            status: row.status,
            length_ns: last_ns.saturating_sub(row.header.started_ns),
            threads: summed.fold(threads.cast_unsigned(), u64::saturating_add),
            outliers: row.outlier_count,
            bytes: size_of(&tx, row.id)?,
            leading_cause,
            origin,
            header: row.header,
        })
    });
    summaries.collect()
}

/// True if its recorder runs and has not ended it.
pub(super) fn is_recording(conn: &Connection, run: RunId) -> rusqlite::Result<bool> {
    Ok(one(conn, run)?.status == RunStatus::Recording)
}

/// Bytes that it takes, approximately.
pub(super) fn size_of(conn: &Connection, run: RunId) -> rusqlite::Result<u64> {
    let sql = format!("SELECT {} FROM runs WHERE id = ?1", space::ESTIMATE);
    conn.prepare_cached(&sql)?
        .query_row([run.0], |row| Ok(row.get::<_, i64>(0)?.max(0).cast_unsigned()))
}

pub(super) fn newest(conn: &Connection) -> rusqlite::Result<Option<RunId>> {
    conn.query_row(&format!("SELECT max(id) FROM runs WHERE {SEEN}"), [], |row| {
        Ok(row.get::<_, Option<i64>>(0)?.map(RunId))
    })
}

pub(super) fn findings(conn: &Connection, run: RunId) -> rusqlite::Result<Vec<Finding>> {
    let tx = conn.unchecked_transaction()?;
    one(&tx, run)?;
    findings_of(&tx, run)
}

/// The findings of a run that is there.
pub(super) fn findings_of(conn: &Connection, run: RunId) -> rusqlite::Result<Vec<Finding>> {
    all(conn, "SELECT finding FROM findings WHERE run = ?1 ORDER BY rank", [run.0], |row| {
        Ok(row.get::<_, Json<Finding>>(0)?.0)
    })
}

pub(super) fn figures(conn: &Connection, run: RunId) -> rusqlite::Result<Option<RunFigures>> {
    let sql = format!("SELECT figures FROM runs WHERE id = ?1 AND {SEEN}");
    let figures = conn.query_row(&sql, [run.0], |row| row.get::<_, Option<Json<RunFigures>>>(0))?;
    Ok(figures.map(|figures| figures.0))
}

/// The row of a run.
pub(super) fn one(conn: &Connection, run: RunId) -> rusqlite::Result<RunRow> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?1 AND {SEEN}");
    conn.query_row(&sql, [run.0], run_row)
}

/// A run, and how many of its outliers overlap the part.
pub(super) fn load(
    conn: &Connection,
    run: RunId,
    part: Option<&Window>,
) -> rusqlite::Result<(Run, u64)> {
    // One transaction: a recorder may be adding to the run meanwhile.
    let tx = conn.unchecked_transaction()?;
    let row = one(&tx, run)?;
    let outliers = parts::outliers(&tx, run, part)?;
    let messages = messages::load(&tx, run)?;
    let until_ns = row.end.is_none().then_some(row.heartbeat_ns);
    let told = Told::of(&outliers, &messages, part);
    let threads = threads::load(&tx, run, until_ns, &told, sums::others(&tx, run)?)?;
    let in_part = part.map_or(Ok(row.outlier_count), |part| parts::count_in(&tx, run, part))?;
    let presences = presences::load(&tx, run)?;
    let mut sums = sums::load(&tx, run, &|tgid| threads.groups.get(&tgid).copied())?;
    let seconds = seconds(&tx, run)?;
    let events = parts::events(&tx, run, part)?;
    let also = presences.iter().map(|presence| presence.tgid);
    let also = also.chain(seconds.iter().map(|second| second.tgid));
    let also = also.chain(events.iter().map(|event| event.tgid));
    let processes = parts::processes(&tx, run, &threads, &outliers, also, &mut sums)?;
    sums.others = threads.others.into_sums();
    let mut stacks = stacks::of(&tx, run, &outliers, &sums)?;
    let mut in_messages = Vec::new();
    if part.is_none() && !messages.slow.is_empty() {
        let (intervals, theirs) = parts::outliers_in(&tx, run, &messages.windows())?;
        in_messages = intervals;
        stacks.extend(theirs);
    }
    let loaded = Run {
        id: row.id,
        header: row.header,
        status: row.status,
        end: row.end,
        heartbeat_ns: row.heartbeat_ns,
        facts: parts::facts(&tx, run)?,
        capabilities: parts::capabilities(&tx, run)?,
        processes: processes.into(),
        threads: threads.one_by_one.into(),
        seconds: seconds.into(),
        stacks: stacks.into(),
        outliers,
        outlier_count: row.outlier_count,
        events: events.into(),
        event_count: row.event_count,
        sums,
        losses: Losses { seen: parts::losses(&tx, run)? },
        cost: parts::cost(&tx, run)?,
        bench: parts::result(&tx, run, "bench")?,
        jitter: timers::load(&tx, run)?,
        messages,
        sockets: sockets::load(&tx, run)?,
        presences: presences.into(),
        in_messages: in_messages.into(),
    };
    Ok((loaded, in_part))
}

/// All rows of a query.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, row)?.collect()
}

/// A column of 64 unsigned bits.
pub(super) fn u64_at(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, U64>(column)?.0)
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let header = RunHeader {
        started_unix_ns: row.get(1)?,
        started_ns: u64_at(row, 2)?,
        target: row.get::<_, Json<_>>(3)?.0,
        follow: row.get(4)?,
        threshold_ns: u64_at(row, 5)?,
        sampled: row.get(6)?,
        recorder_pid: row.get(7)?,
        version: row.get(8)?,
        labels: row.get::<_, Json<_>>(17)?.0,
    };
    let recorder =
        Recorder { pid: header.recorder_pid, start_ticks: row.get(9)?, boot_id: row.get(10)? };
    let end = match row.get::<_, Option<U64>>(11)? {
        Some(U64(ended_ns)) => {
            Some(RunEnd { ended_ns, exit_status: row.get(12)?, reason: row.get(13)? })
        }
        None => None,
    };
    let status = match &end {
        Some(_) => RunStatus::Complete,
        None if recorder.is_alive() => RunStatus::Recording,
        None => RunStatus::Interrupted,
    };
    Ok(RunRow {
        id: RunId(row.get(0)?),
        header,
        status,
        end,
        heartbeat_ns: u64_at(row, 14)?,
        outlier_count: u64_at(row, 15)?,
        event_count: u64_at(row, 16)?,
    })
}

pub(super) fn seconds(conn: &Connection, run: RunId) -> rusqlite::Result<Vec<MetricSecond>> {
    let mut unpacker = Unpacker::new();
    all(
        conn,
        "SELECT start_ns, tgid, metric, precision, sum, min, max, buckets
         FROM seconds WHERE run = ?1 ORDER BY start_ns, rowid",
        [run.0],
        |row| {
            Ok(MetricSecond {
                tgid: row.get(1)?,
                metric: row.get::<_, Text<_>>(2)?.0,
                start_ns: u64_at(row, 0)?,
                histogram: histogram_at(row, 3, &mut unpacker)?,
            })
        },
    )
}

/// Precision, sum, lowest and highest value and buckets, from this column on.
pub(super) fn histogram_at(
    row: &Row<'_>,
    column: usize,
    unpacker: &mut Unpacker,
) -> rusqlite::Result<Histogram> {
    let at = column + 4;
    let precision = row.get(column)?;
    let blob = row.get_ref(at)?.as_blob().map_err(|error| unreadable(at, error))?;
    let buckets = unpacker
        .unpack(blob, precision)
        .map_err(|error: UnreadableBuckets| unreadable(at, FromSqlError::other(error)))?;
    let [sum, min, max] = [1, 2, 3].map(|place| u64_at(row, column + place));
    Ok(Histogram::from_parts(precision, buckets, sum?, min?, max?))
}

fn unreadable(column: usize, error: FromSqlError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error))
}
