//! The disk at commit.

use crate::databases::Postgres;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "postgres_commit",
    software: "PostgreSQL",
    version: &["postgres", "--version"],
    needs: &["pgbench", "initdb", "psql"],
    what: "4 clients commit small updates with synchronous_commit",
    accepted: &[
        ("fsync-journal", "the sync waits for the file system's journal"),
        ("disk-sync", "asleep in fsync or fdatasync for the disk"),
        ("futex-convoy", "the others wait for WALWriteLock, whose holder syncs"),
        ("turn-taking", "the same, one sync at a time"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let postgres = Postgres::start(stage, 8, &["track_wal_io_timing=on"]);
    let _load = postgres.bench(stage, &["-c", "4", "-T", "60", "-N"]);
    let synced = |stage: &Stage| {
        let row = postgres.sql(stage, "SELECT wal_sync, wal_sync_time FROM pg_stat_wal");
        let (count, ms) = row.trim().split_once('|').unwrap();
        (count.parse::<u64>().unwrap(), ms.parse::<f64>().unwrap())
    };
    stage.warm_up();
    let before = synced(stage);
    stage.record(&postgres.server);
    let after = synced(stage);
    let lost_s = (after.1 - before.1) / 1e3;
    let text = format!("pg_stat_wal: {} syncs took {lost_s:.2} s", after.0 - before.0);
    Truth { text, lost_s }
}
