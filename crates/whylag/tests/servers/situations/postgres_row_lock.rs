//! A row that a client keeps locked while it thinks.

use crate::databases::{Postgres, lock_waits};
use crate::peers::Repeated;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "postgres_row_lock",
    software: "PostgreSQL",
    version: &["postgres", "--version"],
    needs: &["pgbench", "initdb", "psql"],
    what: "6 clients update one row; a client locks it, thinks for 100 ms, commits, every 110 ms",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let settings = ["log_lock_waits=on", "deadlock_timeout=10ms", "synchronous_commit=off"];
    let postgres = Postgres::start(stage, 1, &settings);
    let script = stage.file("update", "UPDATE pgbench_branches SET bbalance = 1 WHERE bid = 1;\n");
    let mut thinker = postgres.session(stage);
    let _thinker = Repeated::start(move || {
        thinker.say("BEGIN; UPDATE pgbench_branches SET bbalance = 2 WHERE bid = 1;");
        std::thread::sleep(Duration::from_millis(100));
        thinker.say("COMMIT;");
        std::thread::sleep(Duration::from_millis(10));
    });
    let _load = postgres.bench(stage, &["-c", "6", "-T", "60", "-f", &script]);
    stage.warm_up();
    let seen = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
    let idle = postgres.sql(stage, seen);
    let (count, lost_s) = lock_waits(&stage.record(&postgres.server));
    let text = format!(
        "log_lock_waits: backends waited {count} times, together {lost_s:.1} s, for a transaction; {} session \
         was idle in transaction when asked",
        idle.trim()
    );
    Truth { text, lost_s }
}
