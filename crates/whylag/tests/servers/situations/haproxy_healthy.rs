//! A proxy in front of a quick server.

use crate::load::{Load, Request};
use crate::servers::{haproxy, haproxy_times, lighttpd};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "haproxy_healthy",
    software: "HAProxy",
    version: &["haproxy", "-v"],
    needs: &["lighttpd"],
    what: "6 clients fetch a small file of lighttpd",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (_lighttpd, backend) = lighttpd(stage);
    let (server, port) = haproxy(stage, &format!("server one 127.0.0.1:{backend}"));
    let load = Load::start(6, Duration::from_millis(8), &Request::get(port, "/hello"));
    stage.warm_up();
    let logged = stage.record(&server);
    let longest = haproxy_times(&logged).iter().map(|times| times[4]).fold(0.0, f64::max);
    Truth::healthy(format!("the log's timers: at most {longest} ms; {}", load.end()))
}
