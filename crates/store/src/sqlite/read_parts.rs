//! Reads the parts of a run that are rows of one table each.

use std::collections::{HashMap, HashSet};

use model::{
    Capability, Cost, Event, EventDetail, EventKind, Fact, Outlier, Process, RunId, Stack, StackId,
    Sums, Window,
};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};
use serde::de::DeserializeOwned;

use super::columns::{Json, Text, U64, stack_at};
use super::outlier::Detail;
use super::read::{all, u64_at};
use super::threads::Threads;
use super::{selection, stacks};
use crate::{LOADED_EVENTS, LOADED_IN_PARTS, LOADED_OUTLIERS, LOADED_THREADS};

pub(super) fn facts(conn: &Connection, run: RunId) -> Result<Vec<Fact>> {
    let sql = "SELECT name, value, source FROM facts WHERE run = ?1 ORDER BY rowid";
    all(conn, sql, [run.0], |row| {
        Ok(Fact { name: row.get(0)?, value: row.get(1)?, source: row.get(2)? })
    })
}

pub(super) fn capabilities(conn: &Connection, run: RunId) -> Result<Vec<Capability>> {
    let sql = "SELECT part, \"on\", because FROM capabilities WHERE run = ?1 ORDER BY rowid";
    all(conn, sql, [run.0], |row| {
        Ok(Capability { part: row.get::<_, Text<_>>(0)?.0, on: row.get(1)?, because: row.get(2)? })
    })
}

/// All processes that a run tells of; of very many those that these parts of it tell of, and `also`;
/// and groups.
pub(super) fn processes(
    conn: &Connection,
    run: RunId,
    threads: &Threads,
    outliers: &[Outlier],
    also: impl Iterator<Item = u32>,
    sums: &mut Sums,
) -> Result<Vec<Process>> {
    let number: i64 = conn
        .prepare_cached("SELECT count(*) FROM processes WHERE run = ?1")?
        .query_row([run.0], |row| row.get(0))?;
    let told = (number > LOADED_THREADS as i64).then(|| {
        let of_threads = threads.one_by_one.iter().map(|thread| thread.tgid);
        let of_others = threads.others.sums().map(|others| others.tgid);
        let all = of_threads.chain(of_others).chain(also);
        all.chain(outliers.iter().flat_map(of_outlier)).chain(sums.processes()).collect()
    });
    let is_told = |tgid| told.as_ref().is_none_or(|told: &HashSet<u32>| told.contains(&tgid));
    let mut processes = Vec::new();
    each_process(conn, run, |process| {
        if is_told(process.tgid) {
            processes.push(process);
        }
    })?;
    processes.extend(threads.others.processes());
    Ok(processes)
}

/// The processes that an outlier tells of.
fn of_outlier(outlier: &Outlier) -> impl Iterator<Item = u32> {
    let waker = outlier.waker.iter().map(|waker| waker.tgid);
    let holder = outlier.holder.iter().map(|holder| holder.tgid);
    let ran_instead = outlier.ran_instead.iter().map(|runner| runner.tgid);
    [outlier.tgid].into_iter().chain(waker).chain(holder).chain(ran_instead)
}

/// All processes of a run, one after the other.
fn each_process(conn: &Connection, run: RunId, mut take: impl FnMut(Process)) -> Result<()> {
    let mut select = conn.prepare_cached(PROCESSES)?;
    let mut rows = select.query([run.0])?;
    while let Some(row) = rows.next()? {
        take(process(row)?);
    }
    Ok(())
}

pub(super) const PROCESSES: &str = "SELECT tgid, comm, exe, build_id, watched FROM processes
                                    WHERE run = ?1 ORDER BY tgid";

pub(super) fn process(row: &Row<'_>) -> Result<Process> {
    Ok(Process {
        tgid: row.get(0)?,
        comm: row.get(1)?,
        exe: row.get(2)?,
        build_id: row.get(3)?,
        watched: row.get(4)?,
    })
}

pub(super) const OUTLIER_COLUMNS: &str =
    "kind, tid, tgid, comm, cpu, start_ns, duration_ns, blocked, object,
                               kernel_stack, user_stack, detail";

/// Outliers that overlap a part of a run: ?1 the run, ?3 and ?4 its time, ?5 its thread.
const IN_PART: &str = "run = ?1 AND start_ns < ?4 AND start_ns + duration_ns > ?3
                       AND (?5 IS NULL OR tid = ?5)";

/// Those of the run that `selection` chose; then the longest of the part that are not among them.
pub(super) fn outliers(
    conn: &Connection,
    run: RunId,
    part: Option<&Window>,
) -> Result<Vec<Outlier>> {
    let mut rowids = selection::of_run(conn, run)?;
    if let Some(part) = part {
        let chosen: HashSet<i64> = rowids.iter().copied().collect();
        let sql = format!(
            "SELECT rowid FROM outliers WHERE {IN_PART} ORDER BY duration_ns DESC, rowid LIMIT ?2"
        );
        let limit = LOADED_OUTLIERS as i64;
        let params = params![run.0, limit, U64(part.from_ns), U64(part.to_ns), part.tid];
        let in_part: Vec<i64> = all(conn, &sql, params, |row| row.get(0))?;
        rowids.extend(in_part.into_iter().filter(|rowid| !chosen.contains(rowid)));
    }
    by_rowid(conn, &rowids)
}

/// The longest of the run, at most so many: what is drawn, where tables need few.
pub(super) fn longest(conn: &Connection, run: RunId, most: usize) -> Result<Vec<Outlier>> {
    let sql = format!(
        "SELECT {OUTLIER_COLUMNS} FROM outliers
         WHERE run = ?1 AND duration_ns >= (SELECT threshold_ns FROM runs WHERE id = ?1)
         ORDER BY duration_ns DESC, rowid LIMIT ?2"
    );
    all(conn, &sql, params![run.0, most as i64], outlier)
}

fn by_rowid(conn: &Connection, rowids: &[i64]) -> Result<Vec<Outlier>> {
    let sql = format!("SELECT {OUTLIER_COLUMNS} FROM outliers WHERE rowid = ?1");
    let mut select = conn.prepare_cached(&sql)?;
    rowids.iter().map(|rowid| select.query_row([rowid], outlier)).collect()
}

/// The longest that overlap any of these parts, and their stacks. In a transaction of the caller.
pub(super) fn outliers_in(
    tx: &Connection,
    run: RunId,
    parts: &[Window],
) -> Result<(Vec<Outlier>, HashMap<StackId, Stack>)> {
    let mut by_start: Vec<&Window> = parts.iter().collect();
    by_start.sort_by_key(|part| part.from_ns);
    // How far the parts up to this one reach: those that can overlap lie together.
    let reach: Vec<u64> = by_start
        .iter()
        .scan(0, |reach, part| {
            *reach = part.to_ns.max(*reach);
            Some(*reach)
        })
        .collect();
    let overlaps = |from_ns: u64, to_ns: u64, tid: u32| {
        let first = reach.partition_point(|reach| *reach <= from_ns);
        let behind = by_start.partition_point(|part| part.from_ns < to_ns);
        by_start
            .get(first..behind)
            .unwrap_or_default()
            .iter()
            .any(|part| part.to_ns > from_ns && part.tid.is_none_or(|only| only == tid))
    };
    let mut select = tx.prepare_cached(
        "SELECT rowid, start_ns, duration_ns, tid FROM outliers
         WHERE run = ?1 ORDER BY duration_ns DESC, rowid",
    )?;
    let mut rows = select.query([run.0])?;
    let mut wanted: Vec<i64> = Vec::new();
    while let Some(row) = rows.next()?
        && wanted.len() < LOADED_IN_PARTS
    {
        let (from_ns, ns): (u64, u64) = (u64_at(row, 1)?, u64_at(row, 2)?);
        if overlaps(from_ns, from_ns.saturating_add(ns), row.get(3)?) {
            wanted.push(row.get(0)?);
        }
    }
    let outliers = by_rowid(tx, &wanted)?;
    let stacks = stacks::of(tx, run, &outliers, &Sums::default())?;
    Ok((outliers, stacks))
}

/// How many outliers overlap a part of a run.
pub(super) fn count_in(conn: &Connection, run: RunId, part: &Window) -> Result<u64> {
    // ?2 is the limit of `outliers`.
    let sql = format!("SELECT count(*) FROM outliers WHERE {IN_PART} AND ?2 IS NULL");
    let none: Option<i64> = None;
    let params = params![run.0, none, U64(part.from_ns), U64(part.to_ns), part.tid];
    let count: i64 = conn.query_row(&sql, params, |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

pub(super) fn outlier(row: &Row<'_>) -> Result<Outlier> {
    let Json(detail) = row.get::<_, Json<Detail<'static>>>(11)?;
    Ok(Outlier {
        kind: row.get::<_, Text<_>>(0)?.0,
        tid: row.get(1)?,
        tgid: row.get(2)?,
        comm: row.get(3)?,
        cpu: row.get(4)?,
        start_ns: u64_at(row, 5)?,
        duration_ns: u64_at(row, 6)?,
        syscall: detail.syscall,
        blocked: row.get::<_, Option<Text<_>>>(7)?.map(|blocked| blocked.0),
        breakdown: detail.breakdown.into_owned(),
        object: u64_at(row, 8)?,
        fault_ip: detail.fault_ip,
        kernel_stack: stack_at(row, 9)?,
        user_stack: stack_at(row, 10)?,
        waker: detail.waker.map(|waker| waker.into_owned()),
        ran_instead: detail.ran_instead.into_owned(),
        holder: detail.holder.map(|holder| holder.into_owned()),
        timer: detail.timer,
        interrupts: detail.interrupts.map(|interrupts| interrupts.into_owned()),
        first_call: detail.first_call,
    })
}

/// The first of each kind of the run, or of the part. A run may have millions: they are walked through
/// in the order of their index, and nothing is read of those that are not wanted but their kind.
pub(super) fn events(conn: &Connection, run: RunId, part: Option<&Window>) -> Result<Vec<Event>> {
    let sql = "SELECT time_ns, kind, tid, tgid, value, detail FROM events
               WHERE run = ?1 AND time_ns BETWEEN ?2 AND ?3 ORDER BY time_ns, rowid";
    let (from, to) = part.map_or((0, i64::MAX as u64), |part| (part.from_ns, part.to_ns));
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params![run.0, U64(from), U64(to)])?;
    let mut seen = HashMap::<String, usize>::new();
    let mut first = Vec::new();
    while let Some(row) = rows.next()? {
        let kind = row.get_ref(1)?.as_str()?;
        let number = match seen.get_mut(kind) {
            Some(number) => number,
            None => seen.entry(kind.to_owned()).or_default(),
        };
        if *number < LOADED_EVENTS {
            *number += 1;
            first.push(event(row)?);
        }
    }
    Ok(first)
}

/// An event, from these columns in the order of the table.
pub(super) fn event(row: &Row<'_>) -> Result<Event> {
    let kind = row.get::<_, Text<_>>(1)?.0;
    Ok(Event {
        time_ns: u64_at(row, 0)?,
        kind,
        tid: row.get(2)?,
        tgid: row.get(3)?,
        value: u64_at(row, 4)?,
        detail: detail(row, 5, kind)?,
    })
}

fn detail(row: &Row<'_>, column: usize, kind: EventKind) -> Result<EventDetail> {
    let text: String = row.get(column)?;
    EventDetail::read(kind, &text)
        .map_err(|error| Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}

pub(super) fn losses(conn: &Connection, run: RunId) -> Result<Vec<(String, u64, u64)>> {
    let sql = "SELECT kind, time_ns, count FROM losses WHERE run = ?1 ORDER BY time_ns, rowid";
    all(conn, sql, [run.0], |row| Ok((row.get(0)?, u64_at(row, 1)?, u64_at(row, 2)?)))
}

pub(super) fn cost(conn: &Connection, run: RunId) -> Result<Cost> {
    let sql = "SELECT cpu_ns, bpf_ns, bpf_runs, events, ring_bytes, peak_rss_bytes, attach_ns,
                      probes, stack_copies, stacks_not_copied
               FROM cost WHERE run = ?1";
    let cost = conn
        .query_row(sql, [run.0], |row| {
            Ok(Cost {
                cpu_ns: u64_at(row, 0)?,
                bpf_ns: u64_at(row, 1)?,
                bpf_runs: u64_at(row, 2)?,
                events: u64_at(row, 3)?,
                ring_bytes: u64_at(row, 4)?,
                peak_rss_bytes: u64_at(row, 5)?,
                attach_ns: u64_at(row, 6)?,
                probes: row.get::<_, Json<_>>(7)?.0,
                stack_copies: u64_at(row, 8)?,
                stacks_not_copied: u64_at(row, 9)?,
            })
        })
        .optional()?;
    Ok(cost.unwrap_or_default())
}

/// What a benchmark or a timer test measured.
pub(super) fn result<T: DeserializeOwned>(
    conn: &Connection,
    run: RunId,
    source: &str,
) -> Result<Option<T>> {
    let sql = "SELECT result FROM results WHERE run = ?1 AND source = ?2";
    conn.query_row(sql, params![run.0, source], |row| Ok(row.get::<_, Json<T>>(0)?.0)).optional()
}
