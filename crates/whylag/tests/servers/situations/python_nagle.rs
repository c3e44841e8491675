//! An answer in two writes, of which Nagle's algorithm holds the second back.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use crate::stage::WATCHED;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "python_nagle",
    software: "Python http.server",
    version: &["/usr/bin/python3", "--version"],
    needs: &[],
    what: "4 clients with connections that stay; the server sends head and body of an answer in two writes",
    accepted: &[(
        "nagle-delack",
        "the second segment waits for a delayed acknowledgement of the first",
    )],
    play,
};

const SERVER: &str = r#"
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = sys.argv[2] == "nodelay"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
    def log_message(self, *arguments):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

fn play(stage: &mut Stage) -> Truth {
    let source = stage.file("server.py", SERVER);
    let port = stage.port();
    let number = port.to_string();
    let serve = |mode: &str, port: u16, number: &str| {
        stage.server(&["/usr/bin/python3", &source, number, mode], port)
    };
    let server = serve("nagle", port, &number);
    let other = stage.port();
    let without = serve("nodelay", other, &other.to_string());
    let load = Load::start(4, Duration::from_millis(5), &Request::get(other, "/"));
    stage.warm_up();
    let quick = load.end();
    drop(without);
    let load = Load::start(4, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    stage.record(&server);
    let slow = load.end();
    let part = 1.0 - quick.quantile(0.5).as_secs_f64() / slow.quantile(0.5).as_secs_f64();
    let text = format!("{slow}; with TCP_NODELAY {quick}");
    Truth { text, lost_s: part * WATCHED.as_secs_f64() }
}
