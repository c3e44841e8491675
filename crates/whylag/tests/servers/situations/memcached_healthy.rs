//! memcached under a light load.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "memcached_healthy",
    software: "memcached",
    version: &["memcached", "-V"],
    needs: &[],
    what: "8 clients GET, 2,000 requests a second",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let number = port.to_string();
    let server = stage.server(&["memcached", "-l", "127.0.0.1", "-p", &number, "-t", "4"], port);
    let load =
        Load::start(8, Duration::from_millis(4), &Request::line(port, "get nothing", "END\r\n"));
    stage.warm_up();
    stage.record(&server);
    let stats = Request::line(port, "stats", "END\r\n").ask();
    let yields = stats.lines().find(|line| line.starts_with("STAT conn_yields")).unwrap_or("?");
    Truth::healthy(format!("{yields}; {}", load.end()))
}
