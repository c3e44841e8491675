//! A monitor of Java whose holder sleeps.

use crate::load::{Load, Request};
use crate::runtimes::{java, java_blocked_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "java_monitor",
    software: "Java HttpServer",
    version: &["java", "-Dsun.net.httpserver.nodelay=true", "--version"],
    needs: &["javac"],
    what: "8 clients; each request sleeps for 20 ms in a synchronized block",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = java(stage, &[], "monitor");
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    stage.warm_up();
    let before = java_blocked_s(port);
    stage.record(&server);
    let lost_s = java_blocked_s(port) - before;
    let text = format!(
        "ThreadMXBean.getBlockedTime: {lost_s:.1} s; the holder is in Thread.sleep; {}",
        load.end()
    );
    Truth { text, lost_s }
}
