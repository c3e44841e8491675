//! Java's web server as it is delivered: head and body of an answer are two writes, and Nagle's
//! algorithm holds the second back.

use std::time::Duration;

use crate::load::{Latencies, Load, Request};
use crate::runtimes::java;
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};

pub static SITUATION: Situation = Situation {
    name: "java_nagle",
    software: "Java HttpServer",
    version: &["java", "--version"],
    needs: &["javac"],
    what: "4 clients with connections that stay; the JDK's default (sun.net.httpserver.nodelay=false)",
    accepted: &[(
        "nagle-delack",
        "the second segment waits for a delayed acknowledgement of the first",
    )],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let quick = {
        let (_server, port) = java(stage, &[], "");
        under_load(port, || stage.warm_up())
    };
    let (server, port) = java(stage, &["-Dsun.net.httpserver.nodelay=false"], "");
    let slow = under_load(port, || {
        stage.warm_up();
        stage.record(&server);
    });
    let part = 1.0 - quick.quantile(0.5).as_secs_f64() / slow.quantile(0.5).as_secs_f64();
    let text = format!("{slow}; with nodelay=true {quick}");
    Truth { text, lost_s: part * WATCHED.as_secs_f64() }
}

fn under_load(port: u16, during: impl FnOnce()) -> Latencies {
    let load = Load::start(4, Duration::from_millis(5), &Request::get(port, "/"));
    during();
    load.end()
}
