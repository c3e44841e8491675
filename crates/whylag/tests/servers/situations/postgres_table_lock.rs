//! A table lock whose holder sleeps in the server.

use crate::databases::{Postgres, lock_waits};
use crate::peers::Repeated;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "postgres_table_lock",
    software: "PostgreSQL",
    version: &["postgres", "--version"],
    needs: &["pgbench", "initdb", "psql"],
    what: "8 clients read a table; a transaction locks it (ACCESS EXCLUSIVE) and sleeps for 250 ms in pg_sleep, every 300 ms",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let settings = ["log_lock_waits=on", "deadlock_timeout=10ms"];
    let postgres = Postgres::start(stage, 1, &settings);
    let mut maintenance = postgres.session(stage);
    let _maintenance = Repeated::start(move || {
        maintenance.say(
            "BEGIN; LOCK TABLE pgbench_accounts IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(0.25) \\g /dev/null\nCOMMIT;",
        );
        std::thread::sleep(Duration::from_millis(300));
    });
    let _load = postgres.bench(stage, &["-c", "8", "-T", "60", "-S", "-R", "400"]);
    stage.warm_up();
    let (count, lost_s) = lock_waits(&stage.record(&postgres.server));
    let text = format!(
        "log_lock_waits: backends waited {count} times, together {lost_s:.1} s, for the table, whose holder was in pg_sleep"
    );
    Truth { text, lost_s }
}
