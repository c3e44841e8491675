//! A listening socket whose queue is full.

use crate::load::{Load, Request};
use crate::process::words;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "gunicorn_backlog",
    software: "Gunicorn",
    version: &["gunicorn", "--version"],
    needs: &["nstat"],
    what: "12 clients, one worker that takes 20 ms for each request, a queue of 2 (--backlog)",
    accepted: &[
        ("listen-overflow", "the kernel drops connections that come while the queue is full"),
        ("worker-pool-full", "the one worker is busy, connections queue"),
    ],
    play,
};

const APPLICATION: &str = r#"
import time

def application(environ, start_response):
    time.sleep(0.02)
    start_response("200 OK", [("Content-Length", "3")])
    return [b"ok\n"]
"#;

fn play(stage: &mut Stage) -> Truth {
    stage.file("application.py", APPLICATION);
    let port = stage.port();
    let line = format!(
        "gunicorn --workers 1 --backlog 2 --worker-tmp-dir /dev/shm --bind 127.0.0.1:{port} application"
    );
    let server = stage.server(&words(&line), port);
    let load = Load::start(12, Duration::from_millis(5), &Request::get_once(port, "/"));
    stage.warm_up();
    let before = overflows(stage);
    stage.record(&server);
    // Each is tried again after a second.
    let lost_s = overflows(stage) - before;
    let text = format!(
        "nstat: {lost_s} connections were dropped by full queues, and tried again after a second; {}",
        load.end()
    );
    Truth { text, lost_s }
}

fn overflows(stage: &Stage) -> f64 {
    let text = stage.run(&["nstat", "-asz", "TcpExtListenOverflows"]);
    let line = text.lines().last().unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
