//! Garbage collections of Go that the requests have to help with.

use crate::load::{Load, Request};
use crate::runtimes::{go, go_collected_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "go_gc",
    software: "Go net/http",
    version: &["go", "version"],
    needs: &[],
    what: "4 clients; each request replaces 4,000 of 400,000 kept objects, and the heap has little room (GOGC=10)",
    accepted: &[("gc-cpu", "most of the CPU time is the collector's")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = go(stage, &["garbage"]);
    let load = Load::start(4, Duration::from_millis(2), &Request::get(port, "/"));
    stage.warm_up();
    let before = go_collected_s(port);
    stage.record(&server);
    let lost_s = go_collected_s(port) - before;
    let text =
        format!("runtime/metrics /cpu/classes/gc: {lost_s:.2} s of CPU time; {}", load.end());
    Truth { text, lost_s }
}
