//! Writers of one SQLite file.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "sqlite_busy",
    software: "SQLite in Python",
    version: &["sqlite3", "--version"],
    needs: &["/usr/bin/python3"],
    what: "a threaded server; each request writes in a transaction of 20 ms, the others try again and sleep (busy_timeout)",
    accepted: &[
        ("file-lock", "sleeps between tries to lock a file that another has locked"),
        ("turn-taking", "one at a time has what the others wait for"),
    ],
    play,
};

const SERVER: &str = r#"
import sqlite3, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def connect():
    return sqlite3.connect("bench.db", timeout=30, isolation_level=None)

class Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    def do_GET(self):
        database = connect()
        began = time.monotonic()
        database.execute("BEGIN IMMEDIATE")
        print("waited", time.monotonic() - began, flush=True)
        database.execute("UPDATE counter SET n = n + 1")
        time.sleep(0.02)
        database.execute("COMMIT")
        database.close()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok\n")
    def log_message(self, *arguments):
        pass

database = connect()
database.execute("PRAGMA synchronous = OFF")
database.execute("CREATE TABLE counter (n INT)")
database.execute("INSERT INTO counter VALUES (0)")
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let source = stage.file("server.py", SERVER);
    let server = stage.server(&["/usr/bin/python3", "-u", &source, &port.to_string()], port);
    let load = Load::start(5, Duration::from_millis(10), &Request::get_once(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let waited =
        logged.lines().filter_map(|line| line.strip_prefix("waited ")?.parse::<f64>().ok());
    let lost_s: f64 = waited.sum();
    let text = format!(
        "the handlers' own log: {lost_s:.1} s in BEGIN IMMEDIATE, whose holder sleeps 20 ms; {}",
        load.end()
    );
    Truth { text, lost_s }
}
