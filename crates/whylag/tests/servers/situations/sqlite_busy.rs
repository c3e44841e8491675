//! Writers of one SQLite file.

use crate::load::{Load, Request};
use crate::process::words;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "sqlite_busy",
    software: "SQLite in Gunicorn",
    version: &["sqlite3", "--version"],
    needs: &["gunicorn"],
    what: "4 processes; each request writes in a transaction of 20 ms, the others sleep and try again (busy_timeout)",
    accepted: &[
        ("file-lock", "sleeps between tries to lock a file that another has locked"),
        ("turn-taking", "one at a time has what the others wait for"),
    ],
    play,
};

const APPLICATION: &str = r#"
import sqlite3, time

def connect():
    return sqlite3.connect("bench.db", timeout=30, isolation_level=None)

def application(environ, start_response):
    database = connect()
    began = time.monotonic()
    database.execute("BEGIN IMMEDIATE")
    print("waited", time.monotonic() - began, flush=True)
    database.execute("UPDATE counter SET n = n + 1")
    time.sleep(0.02)
    database.execute("COMMIT")
    database.close()
    start_response("200 OK", [("Content-Length", "3")])
    return [b"ok\n"]
"#;

fn play(stage: &mut Stage) -> Truth {
    stage.file("application.py", APPLICATION);
    let create = "CREATE TABLE counter (n INT); INSERT INTO counter VALUES (0);";
    stage.run(&["sqlite3", "bench.db", create]);
    let port = stage.port();
    let line = format!(
        "gunicorn --workers 4 --worker-tmp-dir /dev/shm --bind 127.0.0.1:{port} application"
    );
    let server = stage.server(&words(&line), port);
    let load = Load::start(6, Duration::from_millis(10), &Request::get_once(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let waited = logged.lines().filter_map(|line| line.strip_prefix("waited "));
    let lost_s: f64 = waited.filter_map(|seconds| seconds.parse::<f64>().ok()).sum();
    let text = format!(
        "the workers' own log: {lost_s:.1} s in BEGIN IMMEDIATE, whose holder sleeps 20 ms; {}",
        load.end()
    );
    Truth { text, lost_s }
}
