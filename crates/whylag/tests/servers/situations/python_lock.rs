//! Handlers that share a lock of their program, in an interpreter that has one of its own.

use std::time::Duration;

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "python_lock",
    software: "Python http.server",
    version: &["/usr/bin/python3", "--version"],
    needs: &[],
    what: "6 clients; each request holds a threading.Lock for 10 ms of time.sleep",
    accepted: &[
        ("futex-convoy", "the lock is a word in memory that is handed from thread to thread"),
        ("turn-taking", "one request at a time has what the others wait for"),
    ],
    play,
};

const SERVER: &str = r#"
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()

class Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    def do_GET(self):
        began = time.monotonic()
        with lock:
            print("waited", time.monotonic() - began, flush=True)
            time.sleep(0.01)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok\n")
    def log_message(self, *arguments):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let source = stage.file("server.py", SERVER);
    let server = stage.server(&["/usr/bin/python3", "-u", &source, &port.to_string()], port);
    let load = Load::start(6, Duration::from_millis(5), &Request::get_once(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let lost = logged.lines().filter_map(|line| line.strip_prefix("waited ")?.parse::<f64>().ok());
    let lost_s: f64 = lost.sum();
    let text = format!("time.monotonic around the lock: {lost_s:.1} s; {}", load.end());
    Truth { text, lost_s }
}
