//! Sums since the start of a run: a later one replaces the one before.

use model::{OtherThreads, RunId, Sum, SumVisitor, Sums};
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{CachedStatement, Connection, Error, Result, Row, Transaction, params};
use serde_json::Deserializer;

use super::columns::Json;

/// Sums of the run ?1, in the order in which they came.
pub(super) const OF_RUN: &str = "SELECT kind, value FROM sums WHERE run = ?1 ORDER BY id";

pub(super) fn put(tx: &Transaction<'_>, run: RunId, sums: &Sums) -> Result<()> {
    let insert = tx.prepare_cached(
        "INSERT INTO sums (run, kind, key, value) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET value = ?4",
    )?;
    sums.visit(&mut Put { insert, run })
}

struct Put<'a> {
    insert: CachedStatement<'a>,
    run: RunId,
}

impl SumVisitor for Put<'_> {
    type Error = Error;

    fn visit(&mut self, table: &'static str, sum: &impl Sum) -> Result<()> {
        self.insert.execute(params![self.run.0, table, Json(sum.key()), Json(sum)])?;
        Ok(())
    }
}

/// So many are read before those of groups are added up.
const AT_ONCE: usize = 50_000;

/// All of a run, the largest first. Of processes that are in a group there are those of the group.
pub(super) fn load(
    conn: &Connection,
    run: RunId,
    group: &dyn Fn(u32) -> Option<u32>,
) -> Result<Sums> {
    let mut sums = Sums::default();
    let mut select = conn.prepare_cached(OF_RUN)?;
    let mut rows = select.query([run.0])?;
    let mut full = AT_ONCE;
    while let Some(row) = rows.next()? {
        add(&mut sums, row)?;
        if sums.len() >= full {
            sums.gather(group);
            full = sums.len() + AT_ONCE;
        }
    }
    sums.gather(group);
    sums.sort();
    Ok(sums)
}

/// The threads that were summed when they were stored.
pub(super) fn others(conn: &Connection, run: RunId) -> Result<Vec<OtherThreads>> {
    let sql = "SELECT kind, value FROM sums WHERE run = ?1 AND kind = 'others' ORDER BY id";
    let mut sums = Sums::default();
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query([run.0])?;
    while let Some(row) = rows.next()? {
        add(&mut sums, row)?;
    }
    Ok(sums.others)
}

/// Adds a row of [`OF_RUN`].
pub(super) fn add(sums: &mut Sums, row: &Row<'_>) -> Result<()> {
    let [kind, value] = [row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?];
    sums.add(kind, &mut Deserializer::from_str(value)).map_err(|error| {
        Error::FromSqlConversionFailure(1, Type::Text, Box::new(FromSqlError::other(error)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::schema::{MIGRATIONS, migrate};
    use super::*;

    /// A run as whylag 0.1 stored it: two rows in each table, the smaller one first.
    const OLD: &str = r#"
        INSERT INTO runs (id, started_unix_ns, started_ns, target, follow, threshold_ns, sampled,
                          recorder_pid, version, heartbeat_ns)
        VALUES (7, 1, 2, '"host"', 0, 3, 0, 4, 'v', 5);
        INSERT INTO stack_sums VALUES (7, 10, 'running:user', NULL, 9, 1, 5), (7, 10, 'running:user', -2, NULL, 2, 6);
        INSERT INTO waits VALUES (7, 10, 'blocked:futex', -1, 2, 'a "b"', NULL, 1, 5, 5, 0, 1),
                                 (7, 10, 'blocked:page_fault:major', 4096, 0, '', '/x', 2, 6, 4, 1, 0);
        INSERT INTO holds VALUES (7, 10, 1, 11, 'ü', 0, NULL, 1, 5, 5),
                                 (7, 10, 0, 12, 'c', 1, 'mmap', 2, 6, 4);
        INSERT INTO runners VALUES (7, 10, 8, 'hog', 99, 1, 5), (7, 10, 9, 'pig', 0, 2, 6);
        INSERT INTO paths VALUES (7, 10, 'running:user', NULL, NULL, 9, 1, 1, 5, 5),
                                 (7, 10, 'blocked:disk', 'fsync', -2, NULL, 0, 2, 6, 4);
        INSERT INTO beside VALUES (7, 10, 11, 'read', '{"proc":"net/udp"}', NULL, 'ss', 1, 5, 5),
                                  (7, 10, 11, 'read', '"socket_diag"', -2, 'ss', 2, 6, 4);
        INSERT INTO call_errors VALUES (7, 10, 'read', 11, 5), (7, 10, 'accept4', 11, 6);
        INSERT INTO counters VALUES (7, 'b', '/proc', 1, -1), (7, 'a', '/proc', 3, 4);
        INSERT INTO cpus VALUES (7, 1, 4, 5, 6), (7, 0, 1, 2, 3);
    "#;

    /// The same, as it is read: the larger one first.
    const NEW: &str = r#"{
        "stack_sums": [
            {"tgid": 10, "account": "running:user", "kernel": 18446744073709551614, "user": null,
             "count": 2, "ns": 6},
            {"tgid": 10, "account": "running:user", "kernel": null, "user": 9,
             "count": 1, "ns": 5}],
        "waits": [
            {"tgid": 10, "account": "blocked:page_fault:major", "object": 4096, "name": "/x",
             "waker_tgid": 0, "waker_comm": "",
             "count": 2, "ns": 6, "max_ns": 4, "by_waiter": 1, "lock_like": 0},
            {"tgid": 10, "account": "blocked:futex", "object": 18446744073709551615, "name": null,
             "waker_tgid": 2, "waker_comm": "a \"b\"",
             "count": 1, "ns": 5, "max_ns": 5, "by_waiter": 0, "lock_like": 1}],
        "holds": [
            {"tgid": 10, "waiter_write": false, "holder_tgid": 12, "holder_comm": "c",
             "holder_write": true, "holder_call": "mmap", "count": 2, "ns": 6, "max_ns": 4},
            {"tgid": 10, "waiter_write": true, "holder_tgid": 11, "holder_comm": "ü",
             "holder_write": false, "holder_call": null, "count": 1, "ns": 5, "max_ns": 5}],
        "runners": [
            {"tgid": 10, "runner_tgid": 9, "runner_comm": "pig", "realtime": 0,
             "count": 2, "ns": 6},
            {"tgid": 10, "runner_tgid": 8, "runner_comm": "hog", "realtime": 99,
             "count": 1, "ns": 5}],
        "paths": [
            {"tgid": 10, "account": "blocked:disk", "call": "fsync",
             "kernel": 18446744073709551614, "user": null, "sampled": false,
             "count": 2, "ns": 6, "max_ns": 4},
            {"tgid": 10, "account": "running:user", "call": null, "kernel": null, "user": 9,
             "sampled": true, "count": 1, "ns": 5, "max_ns": 5}],
        "beside": [
            {"tgid": 10, "other_tgid": 11, "other_comm": "ss", "other_call": "read",
             "reads": "socket_diag", "kernel": 18446744073709551614,
             "count": 2, "ns": 6, "max_ns": 4},
            {"tgid": 10, "other_tgid": 11, "other_comm": "ss", "other_call": "read",
             "reads": {"proc": "net/udp"}, "kernel": null, "count": 1, "ns": 5, "max_ns": 5}],
        "call_errors": [
            {"tgid": 10, "call": "accept4", "errno": 11, "count": 6},
            {"tgid": 10, "call": "read", "errno": 11, "count": 5}],
        "counters": [
            {"name": "a", "source": "/proc", "first": 3, "last": 4},
            {"name": "b", "source": "/proc", "first": 1, "last": 18446744073709551615}],
        "cpus": [
            {"cpu": 0, "idle_ns": 1, "busy_ns": 2, "stolen_ns": 3},
            {"cpu": 1, "idle_ns": 4, "busy_ns": 5, "stolen_ns": 6}]
    }"#;

    #[test]
    fn sums_of_an_older_store_move_with_their_keys() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &MIGRATIONS[..4]).unwrap();
        conn.execute_batch(OLD).unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        let moved: Sums = serde_json::from_str(NEW).unwrap();
        assert_eq!(load(&conn, RunId(7), &|_| None).unwrap(), moved);

        // Its recorder goes on: each sum is found again.
        let mut later = moved;
        later.waits[1].ns = 9;
        later.waits.reverse();
        let tx = conn.transaction().unwrap();
        put(&tx, RunId(7), &later).unwrap();
        assert_eq!(load(&tx, RunId(7), &|_| None).unwrap(), later);
    }

    #[test]
    fn a_sum_of_a_later_version_is_left_out() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        conn.execute("INSERT INTO sums VALUES (1, 7, 'later', '[]', '{}')", []).unwrap();
        assert_eq!(load(&conn, RunId(7), &|_| None).unwrap(), Sums::default());
        conn.execute("INSERT INTO sums VALUES (2, 7, 'cpus', '[]', '{}')", []).unwrap();
        assert!(
            load(&conn, RunId(7), &|_| None).unwrap_err().to_string().contains("missing field")
        );
    }
}
