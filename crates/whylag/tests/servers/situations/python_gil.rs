//! Threads that compute take turns with the interpreter lock.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "python_gil",
    software: "Python http.server",
    version: &["/usr/bin/python3", "--version"],
    needs: &[],
    what: "4 clients; each request computes for some ms in a thread of its own; one more thread computes all the time",
    accepted: &[
        ("turn-taking", "one thread at a time has the interpreter lock (GIL)"),
        ("futex-convoy", "the lock is a word in memory that is handed from thread to thread"),
    ],
    play,
};

const SERVER: &str = r#"
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def compute(rounds):
    total = 0
    for number in range(rounds):
        total += number * number
    return total

def background():
    while True:
        compute(100000)

class Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    def do_GET(self):
        began, ran = time.monotonic(), time.thread_time()
        compute(150000)
        kept = (time.monotonic() - began) - (time.thread_time() - ran)
        # In one piece: what print() writes in several mixes with that of other threads.
        sys.stdout.write(f"not running {kept}\n")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok\n")
    def log_message(self, *arguments):
        pass

threading.Thread(target=background, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let source = stage.file("server.py", SERVER);
    let server = stage.server(&["/usr/bin/python3", "-u", &source, &port.to_string()], port);
    let load = Load::start(4, Duration::from_millis(40), &Request::get_once(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let lost =
        logged.lines().filter_map(|line| line.strip_prefix("not running ")?.parse::<f64>().ok());
    let lost_s: f64 = lost.sum();
    let text = format!(
        "time.thread_time: handlers, which only compute, were kept from it for {lost_s:.1} s; on 2 CPUs one thread ran at a time; {}",
        load.end()
    );
    Truth { text, lost_s }
}
