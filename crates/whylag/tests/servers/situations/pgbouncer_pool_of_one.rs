//! A pool with one connection.

use crate::databases::Postgres;
use crate::process::words;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

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
    let line =
        format!("pgbench -h 127.0.0.1 -p {port} -U bench -n -c 8 -T 60 -f {script} postgres");
    let _load = stage.client(&line);
    stage.warm_up();
    let before = waited_s(stage, port);
    stage.record(&server);
    let lost_s = waited_s(stage, port) - before;
    let text = format!("SHOW STATS_TOTALS: clients waited {lost_s:.1} s for a server connection");
    Truth { text, lost_s }
}

/// The last one of the totals: microseconds that clients have waited.
fn waited_s(stage: &Stage, port: u16) -> f64 {
    let query = ["-XAt", "-c", "SHOW STATS_TOTALS"];
    let line = format!("psql -h 127.0.0.1 -p {port} -U bench pgbouncer");
    let rows = stage.run(&[&words(&line), query.as_slice()].concat());
    let row = rows.lines().find(|row| row.starts_with("postgres|")).unwrap();
    row.rsplit('|').next().unwrap().parse::<f64>().unwrap() / 1e6
}
