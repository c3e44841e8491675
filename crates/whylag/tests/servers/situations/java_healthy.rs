//! Java's web server under a light load.

use crate::load::{Load, Request};
use crate::runtimes::{java, java_blocked_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "java_healthy",
    software: "Java HttpServer",
    version: &["java", "-Dsun.net.httpserver.nodelay=true", "--version"],
    needs: &["javac"],
    what: "8 clients, each answer at once",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = java(stage, &[], "");
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    stage.warm_up();
    let before = java_blocked_s(port);
    stage.record(&server);
    let blocked = java_blocked_s(port) - before;
    Truth::healthy(format!("ThreadMXBean.getBlockedTime: {blocked:.3} s; {}", load.end()))
}
