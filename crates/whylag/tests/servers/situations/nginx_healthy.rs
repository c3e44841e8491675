//! nginx under a light load.

use std::time::Duration;

use crate::load::{Load, Request};
use crate::servers::nginx;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "nginx_healthy",
    software: "nginx",
    version: &["nginx", "-v"],
    needs: &[],
    what: "8 clients fetch a small file of two workers",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    stage.file("hello", "hello\n");
    let log = stage.path("access");
    let (server, port) = nginx(stage, 2, "", &format!("access_log {log} times;"));
    let load = Load::start(8, Duration::from_millis(8), &Request::get(port, "/hello"));
    stage.warm_up();
    stage.record(&server);
    let slow = stage.read("access").lines().filter(|line| !line.starts_with("0.00")).count();
    let text = format!("{}; by nginx's $request_time {slow} took 10 ms or more", load.end());
    Truth::healthy(text)
}
