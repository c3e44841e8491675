//! A loop that does not look whether it has to stop.

use crate::load::{Load, Request};
use crate::runtimes::java;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "java_safepoint_late",
    software: "Java HttpServer",
    version: &["java", "--version"],
    needs: &["javac"],
    what: "4 clients; short collections (serial collector) wait for a thread that sums up in a loop with an \
           int counter, which has no safepoint poll, again and again",
    accepted: &[("safepoint-late", "all other threads stand still until that loop has ended")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let options = ["-Xmn2m", "-XX:+UseSerialGC", "-Xlog:gc,safepoint"];
    let (server, port) = java(stage, &options, "counted");
    let load = Load::start(4, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let reached = logged.lines().filter_map(|line| line.split_once("Reaching safepoint: "));
    let took = reached.filter_map(|(_, rest)| rest.split_once(" ns")?.0.parse::<f64>().ok());
    let took: Vec<f64> = took.collect();
    let lost_s = took.iter().sum::<f64>() / 1e9;
    let text = format!(
        "-Xlog:safepoint: {} safepoints, reached after {lost_s:.2} s together; {}",
        took.len(),
        load.end()
    );
    Truth { text, lost_s }
}
