//! Writes a run, each call in one transaction.
//!
//! `Err(QueryReturnedNoRows)` means that there is no such run.

use model::{Batch, Finding, Outlier, RunEnd, RunFigures, RunHeader, RunId, ThreadAccounts};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::buckets::Packer;
use super::columns::{Json, Text, U64, stack_key};
use super::messages;
use super::outlier::Detail;
use super::{presences, sockets, space, stacks, sums, timers};
use crate::recorder::Recorder;

pub(super) fn begin(conn: &Connection, header: &RunHeader) -> rusqlite::Result<RunId> {
    put_run(conn, None, header, &Recorder::of_pid(header.recorder_pid))
}

/// A new run; `number` is free, or `None` for the next.
pub(super) fn put_run(
    conn: &Connection,
    number: Option<RunId>,
    header: &RunHeader,
    recorder: &Recorder,
) -> rusqlite::Result<RunId> {
    conn.execute(
        "INSERT INTO runs (started_unix_ns, started_ns, target, follow, threshold_ns, sampled,
                           recorder_pid, recorder_start, boot_id, version, heartbeat_ns, id, labels)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?2, ?11, ?12)",
        params![
            header.started_unix_ns,
            U64(header.started_ns),
            Json(&header.target),
            header.follow,
            U64(header.threshold_ns),
            header.sampled,
            recorder.pid,
            recorder.start_ticks,
            recorder.boot_id,
            header.version,
            number.map(|number| number.0),
            Json(&header.labels),
        ],
    )?;
    Ok(RunId(conn.last_insert_rowid()))
}

pub(super) fn append(conn: &mut Connection, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    put_batch(&tx, run, batch)?;
    tx.commit()
}

/// Stores a batch, and adds to the size of the run what it took.
pub(super) fn put_batch(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    // Nobody else writes during a transaction.
    let before = space::used(tx)?;
    put_parts(tx, run, batch)?;
    let grown = space::used(tx)? - before;
    tx.prepare_cached("UPDATE runs SET bytes = ifnull(bytes, 0) + ?2 WHERE id = ?1")?
        .execute(params![run.0, grown])?;
    Ok(())
}

/// Without its size: of a run whose store is nobody's.
pub(super) fn put_parts(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    advance(tx, run, batch)?;
    environment(tx, run, batch)?;
    batch.threads.iter().try_for_each(|thread| put_thread(tx, run, thread))?;
    add_seconds(tx, run, batch)?;
    add_outliers(tx, run, &batch.outliers)?;
    add_events(tx, run, batch)?;
    stacks::put(tx, run, &batch.stacks)?;
    sums::put(tx, run, &batch.sums)?;
    put_own_state(tx, run, batch)?;
    put_results(tx, run, batch)?;
    messages::put(tx, run, &batch.messages)?;
    sockets::put(tx, run, &batch.sockets)?;
    presences::put(tx, run, &batch.presences)
}

pub(super) fn finish(conn: &Connection, run: RunId, end: &RunEnd) -> rusqlite::Result<()> {
    stacks::remove_replaced(conn, run)?;
    let changed = conn.execute(
        "UPDATE runs SET ended_ns = ?2, exit_status = ?3, end_reason = ?4 WHERE id = ?1",
        params![run.0, U64(end.ended_ns), end.exit_status, end.reason],
    )?;
    some_run(changed)
}

pub(super) fn put_findings(
    conn: &mut Connection,
    run: RunId,
    findings: &[Finding],
) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.query_row("SELECT 1 FROM runs WHERE id = ?1", [run.0], |_| Ok(()))?;
    replace_findings(&tx, run, findings)?;
    tx.commit()
}

pub(super) fn put_figures(
    conn: &Connection,
    run: RunId,
    figures: &RunFigures,
) -> rusqlite::Result<()> {
    let sql = "UPDATE runs SET figures = ?2 WHERE id = ?1";
    some_run(conn.execute(sql, params![run.0, Json(figures)])?)
}

pub(super) fn set_label(
    conn: &Connection,
    run: RunId,
    name: &str,
    value: &str,
) -> rusqlite::Result<()> {
    // One statement: no other label is lost to somebody who sets one at the same time.
    let sql = "UPDATE runs SET labels = json_patch(labels, json_object(?2, ?3)) WHERE id = ?1";
    some_run(conn.execute(sql, params![run.0, name, value])?)
}

pub(super) fn replace_findings(
    tx: &Transaction<'_>,
    run: RunId,
    findings: &[Finding],
) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM findings WHERE run = ?1", [run.0])?;
    for (rank, finding) in findings.iter().enumerate() {
        tx.execute(
            "INSERT INTO findings (run, rank, cause, share, finding) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![run.0, rank as i64, finding.cause, finding.share, Json(finding)],
        )?;
    }
    Ok(())
}

fn some_run(changed: usize) -> rusqlite::Result<()> {
    if changed == 0 { Err(rusqlite::Error::QueryReturnedNoRows) } else { Ok(()) }
}

fn advance(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    let threshold_ns = tx
        .prepare_cached("SELECT threshold_ns FROM runs WHERE id = ?1")?
        .query_row([run.0], |row| Ok(row.get::<_, U64>(0)?.0))?;
    // Those that were kept for the sake of a message only are no outliers of the run.
    let outliers = batch.outliers.iter().filter(|o| o.duration_ns >= threshold_ns).count();
    let changed = tx
        .prepare_cached(
            "UPDATE runs SET heartbeat_ns = max(heartbeat_ns, ?2),
                             outlier_count = outlier_count + ?3, event_count = event_count + ?4
             WHERE id = ?1",
        )?
        .execute(params![
            run.0,
            U64(batch.heartbeat_ns),
            outliers as i64,
            batch.events.len() as i64
        ])?;
    some_run(changed)
}

fn environment(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    let mut insert =
        tx.prepare_cached("INSERT INTO facts (run, name, value, source) VALUES (?1, ?2, ?3, ?4)")?;
    for fact in &batch.facts {
        insert.execute(params![run.0, fact.name, fact.value, fact.source])?;
    }
    let mut put = tx.prepare_cached(
        "INSERT INTO processes (run, tgid, comm, exe, build_id, watched)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         -- One that has ended may be seen again by its name alone.
         ON CONFLICT DO UPDATE SET comm = ?3, exe = iif(?4 = '', exe, ?4),
           build_id = iif(?5 = '', build_id, ?5), watched = max(watched, ?6)",
    )?;
    for p in &batch.processes {
        put.execute(params![run.0, p.tgid, p.comm, p.exe, p.build_id, p.watched])?;
    }
    Ok(())
}

fn put_thread(tx: &Transaction<'_>, run: RunId, thread: &ThreadAccounts) -> rusqlite::Result<()> {
    let id: i64 = tx
        .prepare_cached(
            "INSERT INTO threads (run, tid, first_ns, tgid, comm, last_ns, alive, open,
                                  minor_faults, major_faults, sleeps, preemptions, migrations,
                                  realtime)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
             ON CONFLICT DO UPDATE SET
                 tgid = ?4, comm = ?5, last_ns = ?6, alive = ?7, open = ?8, minor_faults = ?9,
                 major_faults = ?10, sleeps = ?11, preemptions = ?12, migrations = ?13,
                 realtime = ?14
             RETURNING id",
        )?
        .query_row(
            params![
                run.0,
                thread.tid,
                U64(thread.first_ns),
                thread.tgid,
                thread.comm,
                U64(thread.last_ns),
                thread.alive,
                Text(thread.open),
                U64(thread.minor_faults),
                U64(thread.major_faults),
                U64(thread.sleeps),
                U64(thread.preemptions),
                U64(thread.migrations),
                thread.realtime,
            ],
            |row| row.get(0),
        )?;
    tx.prepare_cached("DELETE FROM accounts WHERE thread = ?1")?.execute([id])?;
    let mut insert =
        tx.prepare_cached("INSERT INTO accounts (thread, account, ns) VALUES (?1, ?2, ?3)")?;
    for (account, ns) in thread.accounts.iter() {
        insert.execute(params![id, Text(account), U64(ns)])?;
    }
    Ok(())
}

fn add_seconds(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    let mut packer = Packer::new();
    let mut insert = tx.prepare_cached(
        "INSERT INTO seconds (run, start_ns, tgid, metric, precision, sum, min, max, buckets)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for second in &batch.seconds {
        let histogram = &second.histogram;
        insert.execute(params![
            run.0,
            U64(second.start_ns),
            second.tgid,
            Text(&second.metric),
            histogram.precision(),
            U64(histogram.sum()),
            U64(histogram.min().unwrap_or(0)),
            U64(histogram.max().unwrap_or(0)),
            packer.pack(histogram)?,
        ])?;
    }
    Ok(())
}

fn add_outliers(tx: &Transaction<'_>, run: RunId, outliers: &[Outlier]) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO outliers (run, duration_ns, start_ns, kind, tid, tgid, comm, cpu, blocked,
                               object, kernel_stack, user_stack, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    for outlier in outliers {
        insert.execute(params![
            run.0,
            U64(outlier.duration_ns),
            U64(outlier.start_ns),
            Text(outlier.kind),
            outlier.tid,
            outlier.tgid,
            outlier.comm,
            outlier.cpu,
            outlier.blocked.map(Text),
            U64(outlier.object),
            outlier.kernel_stack.map(stack_key),
            outlier.user_stack.map(stack_key),
            Json(Detail::of(outlier)),
        ])?;
    }
    Ok(())
}

fn add_events(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO events (run, time_ns, kind, tid, tgid, value, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for e in &batch.events {
        insert.execute(params![
            run.0,
            U64(e.time_ns),
            Text(e.kind),
            e.tid,
            e.tgid,
            U64(e.value),
            e.detail.to_string()
        ])?;
    }
    let mut insert = tx
        .prepare_cached("INSERT INTO losses (run, time_ns, kind, count) VALUES (?1, ?2, ?3, ?4)")?;
    for (kind, time_ns, count) in &batch.losses {
        insert.execute(params![run.0, U64(*time_ns), kind, U64(*count)])?;
    }
    Ok(())
}

/// What the recorder says of itself.
fn put_own_state(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO capabilities (run, part, \"on\", because) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET \"on\" = ?3, because = ?4",
    )?;
    for capability in &batch.capabilities {
        put.execute(params![run.0, Text(capability.part), capability.on, capability.because])?;
    }
    if let Some(cost) = &batch.cost {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO cost (run, cpu_ns, bpf_ns, bpf_runs, events, ring_bytes,
                                          peak_rss_bytes, attach_ns, probes, stack_copies,
                                          stacks_not_copied)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            run.0,
            U64(cost.cpu_ns),
            U64(cost.bpf_ns),
            U64(cost.bpf_runs),
            U64(cost.events),
            U64(cost.ring_bytes),
            U64(cost.peak_rss_bytes),
            U64(cost.attach_ns),
            Json(&cost.probes),
            U64(cost.stack_copies),
            U64(cost.stacks_not_copied),
        ])?;
    }
    Ok(())
}

fn put_results(tx: &Transaction<'_>, run: RunId, batch: &Batch) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT OR REPLACE INTO results (run, source, result) VALUES (?1, ?2, ?3)",
    )?;
    if let Some(bench) = &batch.bench {
        put.execute(params![run.0, "bench", Json(bench)])?;
    }
    if let Some(jitter) = &batch.jitter {
        timers::put(tx, run, jitter)?;
    }
    timers::put_ticks(tx, run, &batch.ticks)
}
