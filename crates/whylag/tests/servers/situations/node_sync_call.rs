//! A synchronous computation in Node's event loop.

use crate::load::{Load, Request};
use crate::runtimes::{node, node_delay};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "node_sync_call",
    software: "Node.js http",
    version: &["node", "--version"],
    needs: &[],
    what: "6 clients; every 10th request hashes a password with pbkdf2Sync",
    accepted: &[("event-loop-blocked", "one thread reads all sockets, and something keeps it")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = node(stage, "sync");
    let load = Load::start(6, Duration::from_millis(15), &Request::get(port, "/"));
    stage.warm_up();
    let [before, ..] = node_delay(port);
    stage.record(&server);
    let [after, longest, _] = node_delay(port);
    let lost_s = after - before;
    let text = format!(
        "performance.now: {lost_s:.2} s in pbkdf2Sync; monitorEventLoopDelay: at most {longest:.0} ms; {}",
        load.end()
    );
    Truth { text, lost_s }
}
