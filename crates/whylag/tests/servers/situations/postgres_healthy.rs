//! PostgreSQL under a light load of reads.

use crate::databases::Postgres;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "postgres_healthy",
    software: "PostgreSQL",
    version: &["postgres", "--version"],
    needs: &["pgbench", "initdb", "psql"],
    what: "4 clients read 400 rows a second",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let postgres = Postgres::start(stage, 4, &[]);
    let _load = postgres.bench(stage, &["-c", "4", "-T", "60", "-S", "-R", "400"]);
    stage.warm_up();
    stage.record(&postgres.server);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let waits = postgres.sql(stage, waits);
    Truth::healthy(format!("pg_stat_activity: {} wait for locks", waits.trim()))
}
