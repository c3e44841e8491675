//! Sums since the start of a run, the largest first.

use model::{
    BesideSum, CallError, Counter, CpuTime, HoldSum, ObjectName, PathSum, RunId, RunnerSum,
    StackId, StackSum, Sums, WaitSum,
};
use rusqlite::{Connection, Result, Row};

use super::columns::{Json, Text, U64};
use super::read::{all, u64_at};

pub(super) fn load(conn: &Connection, run: RunId) -> Result<Sums> {
    Ok(Sums {
        stack_sums: stack_sums(conn, run)?,
        waits: waits(conn, run)?,
        holds: holds(conn, run)?,
        paths: paths(conn, run)?,
        beside: beside(conn, run)?,
        call_errors: call_errors(conn, run)?,
        counters: counters(conn, run)?,
        runners: runners(conn, run)?,
        cpus: cpus(conn, run)?,
    })
}

fn stack_sums(conn: &Connection, run: RunId) -> Result<Vec<StackSum>> {
    let sql = "SELECT tgid, account, kernel_stack, user_stack, count, ns FROM stack_sums
               WHERE run = ?1 ORDER BY ns DESC, rowid";
    all(conn, sql, [run.0], |row| {
        Ok(StackSum {
            tgid: row.get(0)?,
            account: row.get::<_, Text<_>>(1)?.0,
            kernel: stack_at(row, 2)?,
            user: stack_at(row, 3)?,
            count: u64_at(row, 4)?,
            ns: u64_at(row, 5)?,
        })
    })
}

fn paths(conn: &Connection, run: RunId) -> Result<Vec<PathSum>> {
    let sql = "SELECT tgid, account, call, kernel_stack, user_stack, sampled, count, ns, max_ns
               FROM paths WHERE run = ?1 ORDER BY ns DESC, rowid";
    all(conn, sql, [run.0], |row| {
        Ok(PathSum {
            tgid: row.get(0)?,
            account: row.get::<_, Text<_>>(1)?.0,
            call: row.get::<_, Option<Text<_>>>(2)?.map(|call| call.0),
            kernel: stack_at(row, 3)?,
            user: stack_at(row, 4)?,
            sampled: row.get(5)?,
            count: u64_at(row, 6)?,
            ns: u64_at(row, 7)?,
            max_ns: u64_at(row, 8)?,
        })
    })
}

fn call_errors(conn: &Connection, run: RunId) -> Result<Vec<CallError>> {
    let sql = "SELECT tgid, call, errno, count FROM call_errors
               WHERE run = ?1 ORDER BY count DESC, tgid, call, errno";
    all(conn, sql, [run.0], |row| {
        Ok(CallError {
            tgid: row.get(0)?,
            call: row.get::<_, Text<_>>(1)?.0,
            errno: row.get(2)?,
            count: u64_at(row, 3)?,
        })
    })
}

fn beside(conn: &Connection, run: RunId) -> Result<Vec<BesideSum>> {
    let sql =
        "SELECT tgid, other_tgid, other_call, reads, kernel_stack, other_comm, count, ns, max_ns
               FROM beside WHERE run = ?1 ORDER BY ns DESC, rowid";
    all(conn, sql, [run.0], |row| {
        Ok(BesideSum {
            tgid: row.get(0)?,
            other_tgid: row.get(1)?,
            other_call: row.get::<_, Text<_>>(2)?.0,
            reads: row.get::<_, Json<_>>(3)?.0,
            kernel: stack_at(row, 4)?,
            other_comm: row.get(5)?,
            count: u64_at(row, 6)?,
            ns: u64_at(row, 7)?,
            max_ns: u64_at(row, 8)?,
        })
    })
}

fn counters(conn: &Connection, run: RunId) -> Result<Vec<Counter>> {
    let sql = "SELECT name, source, first, last FROM counters WHERE run = ?1 ORDER BY name, source";
    all(conn, sql, [run.0], |row| {
        Ok(Counter {
            name: row.get(0)?,
            source: row.get(1)?,
            first: u64_at(row, 2)?,
            last: u64_at(row, 3)?,
        })
    })
}

fn waits(conn: &Connection, run: RunId) -> Result<Vec<WaitSum>> {
    let sql = "SELECT tgid, account, object, name, waker_tgid, waker_comm, count, ns, max_ns,
                      by_waiter, lock_like
               FROM waits WHERE run = ?1 ORDER BY ns DESC, tgid, account, object, waker_tgid";
    all(conn, sql, [run.0], |row| {
        let account = row.get::<_, Text<_>>(1)?.0;
        let name: Option<String> = row.get(3)?;
        Ok(WaitSum {
            tgid: row.get(0)?,
            account,
            object: u64_at(row, 2)?,
            name: name.map(|name| ObjectName::read(account, name)),
            waker_tgid: row.get(4)?,
            waker_comm: row.get(5)?,
            count: u64_at(row, 6)?,
            ns: u64_at(row, 7)?,
            max_ns: u64_at(row, 8)?,
            by_waiter: u64_at(row, 9)?,
            lock_like: u64_at(row, 10)?,
        })
    })
}

fn holds(conn: &Connection, run: RunId) -> Result<Vec<HoldSum>> {
    let sql = "SELECT tgid, waiter_write, holder_tgid, holder_comm, holder_write, holder_call,
                      count, ns, max_ns
               FROM holds WHERE run = ?1 ORDER BY ns DESC, rowid";
    all(conn, sql, [run.0], |row| {
        Ok(HoldSum {
            tgid: row.get(0)?,
            waiter_write: row.get(1)?,
            holder_tgid: row.get(2)?,
            holder_comm: row.get(3)?,
            holder_write: row.get(4)?,
            holder_call: row.get::<_, Option<Text<_>>>(5)?.map(|call| call.0),
            count: u64_at(row, 6)?,
            ns: u64_at(row, 7)?,
            max_ns: u64_at(row, 8)?,
        })
    })
}

fn runners(conn: &Connection, run: RunId) -> Result<Vec<RunnerSum>> {
    let sql = "SELECT tgid, runner_tgid, runner_comm, realtime, count, ns FROM runners
               WHERE run = ?1 ORDER BY ns DESC, tgid, runner_tgid, realtime";
    all(conn, sql, [run.0], |row| {
        Ok(RunnerSum {
            tgid: row.get(0)?,
            runner_tgid: row.get(1)?,
            runner_comm: row.get(2)?,
            realtime: row.get(3)?,
            count: u64_at(row, 4)?,
            ns: u64_at(row, 5)?,
        })
    })
}

fn cpus(conn: &Connection, run: RunId) -> Result<Vec<CpuTime>> {
    let sql = "SELECT cpu, idle_ns, busy_ns, stolen_ns FROM cpus WHERE run = ?1 ORDER BY cpu";
    all(conn, sql, [run.0], |row| {
        Ok(CpuTime {
            cpu: row.get(0)?,
            idle_ns: u64_at(row, 1)?,
            busy_ns: u64_at(row, 2)?,
            stolen_ns: u64_at(row, 3)?,
        })
    })
}

pub(super) fn stack_at(row: &Row<'_>, column: usize) -> Result<Option<StackId>> {
    Ok(row.get::<_, Option<U64>>(column)?.map(|id| StackId(id.0)))
}
