//! NATS under a light load.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "nats_healthy",
    software: "NATS",
    version: &["nats-server", "--version"],
    needs: &[],
    what: "8 clients publish a message and wait until it is taken, 1,000 times a second",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let number = port.to_string();
    let server = stage.server(&["nats-server", "-a", "127.0.0.1", "-p", &number], port);
    let request = Request::line(port, "PUB load 5\r\nhello\r\nPING", "PONG\r\n");
    let load = Load::start(8, Duration::from_millis(8), &request);
    stage.warm_up();
    stage.record(&server);
    Truth::healthy(load.end().to_string())
}
