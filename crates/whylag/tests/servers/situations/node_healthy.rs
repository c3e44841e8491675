//! Node under a light load.

use crate::load::{Load, Request};
use crate::runtimes::{node, node_delay};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "node_healthy",
    software: "Node.js http",
    version: &["node", "--version"],
    needs: &[],
    what: "6 clients, each answer at once",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = node(stage, "");
    let load = Load::start(6, Duration::from_millis(15), &Request::get(port, "/"));
    stage.warm_up();
    stage.record(&server);
    let [_, _, median] = node_delay(port);
    let text =
        format!("monitorEventLoopDelay: p50 {median:.1} ms (asked every 5 ms); {}", load.end());
    Truth::healthy(text)
}
