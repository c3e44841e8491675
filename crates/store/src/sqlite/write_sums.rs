//! Sums since the start of a run: a later one replaces the one before.

use model::{ObjectName, RunId, StackId, Sums};
use rusqlite::{Transaction, params};

use super::columns::{Json, Text, U64};

pub(super) fn put_all(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> rusqlite::Result<()> {
    put_stack_sums(tx, run, sums)?;
    put_paths(tx, run, sums)?;
    put_waits(tx, run, sums)?;
    put_holds_and_runners(tx, run, sums)?;
    put_beside(tx, run, sums)?;
    put_counts(tx, run, sums)
}

fn put_stack_sums(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO stack_sums (run, tgid, account, kernel_stack, user_stack, count, ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT DO UPDATE SET count = ?6, ns = ?7",
    )?;
    for sum in &sums.stack_sums {
        put.execute(params![
            run.0,
            sum.tgid,
            Text(sum.account),
            sum.kernel.map(stack_key),
            sum.user.map(stack_key),
            U64(sum.count),
            U64(sum.ns),
        ])?;
    }
    Ok(())
}

fn put_waits(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO waits (run, tgid, account, object, waker_tgid, waker_comm, name, count, ns,
                            max_ns, by_waiter, lock_like)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT DO UPDATE SET
             waker_comm = ?6, name = ?7, count = ?8, ns = ?9, max_ns = ?10, by_waiter = ?11,
             lock_like = ?12",
    )?;
    for wait in &sums.waits {
        put.execute(params![
            run.0,
            wait.tgid,
            Text(wait.account),
            U64(wait.object),
            wait.waker_tgid,
            wait.waker_comm,
            wait.name.as_ref().map(ObjectName::as_str),
            U64(wait.count),
            U64(wait.ns),
            U64(wait.max_ns),
            U64(wait.by_waiter),
            U64(wait.lock_like),
        ])?;
    }
    Ok(())
}

fn put_holds_and_runners(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO holds (run, tgid, waiter_write, holder_tgid, holder_comm, holder_write,
                            holder_call, count, ns, max_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT DO UPDATE SET count = ?8, ns = ?9, max_ns = ?10",
    )?;
    for hold in &sums.holds {
        put.execute(params![
            run.0,
            hold.tgid,
            hold.waiter_write,
            hold.holder_tgid,
            hold.holder_comm,
            hold.holder_write,
            hold.holder_call.map(Text),
            U64(hold.count),
            U64(hold.ns),
            U64(hold.max_ns),
        ])?;
    }
    let mut put = tx.prepare_cached(
        "INSERT INTO runners (run, tgid, runner_tgid, runner_comm, realtime, count, ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT DO UPDATE SET runner_comm = ?4, count = ?6, ns = ?7",
    )?;
    for r in &sums.runners {
        put.execute(params![
            run.0,
            r.tgid,
            r.runner_tgid,
            r.runner_comm,
            r.realtime,
            U64(r.count),
            U64(r.ns),
        ])?;
    }
    Ok(())
}

fn put_beside(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO beside (run, tgid, other_tgid, other_call, reads, kernel_stack, other_comm, count,
                             ns, max_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT DO UPDATE SET other_comm = ?7, count = ?8, ns = ?9, max_ns = ?10",
    )?;
    for sum in &sums.beside {
        put.execute(params![
            run.0,
            sum.tgid,
            sum.other_tgid,
            Text(sum.other_call),
            Json(&sum.reads),
            sum.kernel.map(stack_key),
            sum.other_comm,
            U64(sum.count),
            U64(sum.ns),
            U64(sum.max_ns),
        ])?;
    }
    Ok(())
}

fn put_paths(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO paths (run, tgid, account, call, kernel_stack, user_stack, sampled, count, ns,
                            max_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT DO UPDATE SET count = ?8, ns = ?9, max_ns = ?10",
    )?;
    for path in &sums.paths {
        put.execute(params![
            run.0,
            path.tgid,
            Text(path.account),
            path.call.map(Text),
            path.kernel.map(stack_key),
            path.user.map(stack_key),
            path.sampled,
            U64(path.count),
            U64(path.ns),
            U64(path.max_ns),
        ])?;
    }
    Ok(())
}

fn put_counts(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO call_errors (run, tgid, call, errno, count) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET count = ?5",
    )?;
    for e in &sums.call_errors {
        put.execute(params![run.0, e.tgid, Text(e.call), e.errno, U64(e.count)])?;
    }
    let mut put = tx.prepare_cached(
        "INSERT INTO counters (run, name, source, first, last) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET last = ?5",
    )?;
    for c in &sums.counters {
        put.execute(params![run.0, c.name, c.source, U64(c.first), U64(c.last)])?;
    }
    let mut put = tx.prepare_cached(
        "INSERT INTO cpus (run, cpu, idle_ns, busy_ns, stolen_ns) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET idle_ns = ?3, busy_ns = ?4, stolen_ns = ?5",
    )?;
    for c in &sums.cpus {
        put.execute(params![run.0, c.cpu, U64(c.idle_ns), U64(c.busy_ns), U64(c.stolen_ns)])?;
    }
    Ok(())
}

pub(super) fn stack_key(stack: StackId) -> U64 {
    U64(stack.0)
}
