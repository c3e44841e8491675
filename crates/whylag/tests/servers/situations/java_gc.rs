//! Garbage collections that stop the server.

use crate::load::{Load, Request};
use crate::runtimes::java;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "java_gc",
    software: "Java HttpServer",
    version: &["java", "-Dsun.net.httpserver.nodelay=true", "--version"],
    needs: &["javac"],
    what: "4 clients; each request replaces 8,000 of 200,000 kept objects, in a heap of 64 MB (serial collector)",
    accepted: &[("jvm-gc", "all threads stand still while the JVM collects")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let options = ["-Xmx64m", "-XX:+UseSerialGC", "-Xlog:gc,safepoint"];
    let (server, port) = java(stage, &options, "garbage");
    let load = Load::start(4, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let pauses = logged.lines().filter(|line| line.contains("Pause "));
    let took = pauses.filter_map(|line| line.rsplit_once(' ')?.1.strip_suffix("ms")?.parse().ok());
    let took: Vec<f64> = took.collect();
    let lost_s = took.iter().sum::<f64>() / 1e3;
    let count = took.len();
    let text = format!("-Xlog:gc: {count} pauses, together {lost_s:.2} s; {}", load.end());
    Truth { text, lost_s }
}
