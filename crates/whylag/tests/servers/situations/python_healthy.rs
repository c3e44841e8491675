//! A threaded server of Python's standard library under a light load.

use std::time::Duration;

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "python_healthy",
    software: "Python http.server",
    version: &["/usr/bin/python3", "--version"],
    needs: &[],
    what: "4 clients fetch a small file, a thread for each request",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    stage.file("hello", "hello\n");
    let port = stage.port();
    let number = port.to_string();
    let server = ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", &number];
    let server = stage.server(&server, port);
    let load = Load::start(4, Duration::from_millis(30), &Request::get_once(port, "/hello"));
    stage.warm_up();
    stage.record(&server);
    Truth::healthy(load.end().to_string())
}
