//! The tables, and how a store comes to have them.
//!
//! The version of a store (`PRAGMA user_version`) is the number of migrations it has had. To
//! change the schema, append a migration; never edit one that was released.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// `PRAGMA application_id` of our files: "WLAG".
pub(super) const APPLICATION_ID: i32 = 0x574c_4147;

/// What leads to the present schema, in order.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
    include_str!("schema_11.sql"),
    include_str!("schema_12.sql"),
    include_str!("schema_13.sql"),
];

/// How long to wait for another process that writes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a process that waits looks whether it can have the store. SQLite's own pauses grow to
/// 100 ms, and miss the short ones that an import makes for others.
const LOOK: Duration = Duration::from_millis(1);

/// How long one waits that has other things to do, and comes again.
const MOMENT: Duration = Duration::from_millis(200);

/// Waits for a look: false after [`BUSY_TIMEOUT`]. `looks` is how many there were.
pub(super) fn wait_while_busy(looks: i32) -> bool {
    std::thread::sleep(LOOK);
    LOOK * looks.unsigned_abs() < BUSY_TIMEOUT
}

/// The same for [`MOMENT`].
pub(super) fn wait_a_moment(looks: i32) -> bool {
    std::thread::sleep(LOOK);
    LOOK * looks.unsigned_abs() < MOMENT
}

/// Applies the migrations that the store lacks, and gives its version, which is greater than
/// their number if a newer whylag wrote it; then nothing is changed.
pub(super) fn migrate(conn: &mut Connection, migrations: &[&str]) -> rusqlite::Result<usize> {
    if version(conn)? >= migrations.len() {
        return version(conn);
    }
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again: another process may have been faster.
    let found = version(&transaction)?;
    for migration in migrations.iter().skip(found) {
        transaction.execute_batch(migration)?;
    }
    let reached = found.max(migrations.len());
    transaction.pragma_update(None, "user_version", reached as i64)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()?;
    Ok(reached)
}

/// Switches to a write-ahead log, so that readers and a writer do not wait for each other. Comes
/// after the first migration: thus the file itself, not only its log, says whose it is.
pub(super) fn use_write_ahead_log(conn: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        // SQLite does not itself wait for other processes here.
        match conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

pub(super) fn version(conn: &Connection) -> rusqlite::Result<usize> {
    conn.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).map(|v| v as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: &str = "ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT 'none'";

    #[test]
    fn only_the_missing_migrations_are_applied_and_data_stays() {
        let mut conn = Connection::open_in_memory().unwrap();
        assert_eq!(migrate(&mut conn, &MIGRATIONS[..1]).unwrap(), 1);
        conn.execute(
            "INSERT INTO runs (started_unix_ns, started_ns, target, follow, threshold_ns, sampled,
                               recorder_pid, version, heartbeat_ns)
             VALUES (1, 2, '\"host\"', 0, 3, 0, 4, 'v', 5)",
            [],
        )
        .unwrap();
        let later = [MIGRATIONS[0], SECOND];
        assert_eq!(migrate(&mut conn, &later).unwrap(), 2);
        assert_eq!(migrate(&mut conn, &later).unwrap(), 2, "and not once more");
        let row = conn.query_row("SELECT started_ns, note FROM runs", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        });
        assert_eq!(row.unwrap(), (2, "none".to_owned()));
    }

    #[test]
    fn a_newer_store_keeps_its_version() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &[MIGRATIONS[0], SECOND]).unwrap();
        assert_eq!(migrate(&mut conn, &MIGRATIONS[..1]).unwrap(), 2);
        assert_eq!(version(&conn).unwrap(), 2);
    }

    #[test]
    fn a_migration_that_fails_leaves_nothing_behind() {
        let mut conn = Connection::open_in_memory().unwrap();
        let broken = [MIGRATIONS[0], "CREATE TABLE extra (a); CREATE TABLE extra (a);"];
        assert!(migrate(&mut conn, &broken).is_err());
        assert_eq!(version(&conn).unwrap(), 0);
        let tables: i64 =
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 0);
    }
}
