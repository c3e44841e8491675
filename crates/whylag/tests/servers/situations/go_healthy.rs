//! Go's web server under a light load.

use crate::load::{Load, Request};
use crate::runtimes::{go, go_waited_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "go_healthy",
    software: "Go net/http",
    version: &["go", "version"],
    needs: &[],
    what: "8 clients, each answer at once",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = go(stage, &[]);
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    stage.warm_up();
    let before = go_waited_s(port);
    stage.record(&server);
    let waited = go_waited_s(port) - before;
    Truth::healthy(format!("runtime/metrics: {waited:.3} s of waits for mutexes; {}", load.end()))
}
