//! Redis under a light load.

use crate::load::{Load, Request};
use crate::servers::{redis, redis_cli};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "redis_healthy",
    software: "Redis",
    version: &["redis-server", "--version"],
    needs: &["redis-cli"],
    what: "8 clients GET, 2,000 requests a second",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (redis, port) = redis(stage, &[]);
    let load = Load::start(8, Duration::from_millis(4), &Request::line(port, "GET key:7", "\r\n"));
    stage.warm_up();
    stage.record(&redis);
    let slow = redis_cli(stage, port, &["SLOWLOG", "LEN"]);
    Truth::healthy(format!("SLOWLOG has {} commands; {}", slow.trim(), load.end()))
}
