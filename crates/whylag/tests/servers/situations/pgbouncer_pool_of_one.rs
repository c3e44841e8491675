//! A pool with one connection.

use crate::databases::Postgres;
use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::process::Stdio;

pub static SITUATION: Situation = Situation {
    name: "pgbouncer_pool_of_one",
    software: "PgBouncer",
    version: &["pgbouncer", "--version"],
    needs: &["postgres", "pgbench", "initdb", "psql"],
    what: "8 clients share one server connection, on which each query sleeps for 20 ms",
    accepted: &[
        ("worker-pool-full", "all connections of the pool are busy, the queue grows"),
        ("slow-peer", "what has the one connection is PostgreSQL, which takes 20 ms"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let postgres = Postgres::start(stage, 1, &[]);
    let port = stage.port();
    let users = stage.file("users", "\"bench\" \"\"\n");
    let ini = format!(
        "[databases]\npostgres = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
         listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {users}\n\
         admin_users = bench\npool_mode = transaction\ndefault_pool_size = 1\n\
         ignore_startup_parameters = extra_float_digits\n",
        postgres.port
    );
    let ini = stage.file("pgbouncer.ini", &ini);
    let server = stage.server(&["pgbouncer", &ini], port);
    let script = stage.file("sleep", "SELECT pg_sleep(0.02);\n");
    let number = port.to_string();
    let words = [
        "pgbench",
        "-h",
        "127.0.0.1",
        "-p",
        &number,
        "-U",
        "bench",
        "-n",
        "-c",
        "8",
        "-T",
        "60",
        "-f",
        &script,
        "postgres",
    ];
    let _load = stage.start(command(&words).stdin(Stdio::null()));
    // The 5th column but one of the totals: microseconds that clients have waited.
    let waited = |stage: &Stage| -> f64 {
        let words = [
            "psql",
            "-h",
            "127.0.0.1",
            "-p",
            &number,
            "-U",
            "bench",
            "-XAt",
            "-c",
            "SHOW STATS_TOTALS",
            "pgbouncer",
        ];
        let rows = stage.run(&words);
        let row = rows.lines().find(|row| row.starts_with("postgres|")).unwrap();
        row.rsplit('|').next().unwrap().parse::<f64>().unwrap() / 1e6
    };
    stage.warm_up();
    let before = waited(stage);
    stage.record(&server);
    let lost_s = waited(stage) - before;
    let text = format!("SHOW STATS_TOTALS: clients waited {lost_s:.1} s for a server connection");
    Truth { text, lost_s }
}
