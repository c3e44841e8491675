//! A queue in front of a backend that may have one connection.

use crate::load::{Load, Request};
use crate::peers::slow_backend;
use crate::servers::{haproxy, haproxy_times};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "haproxy_queue",
    software: "HAProxy",
    version: &["haproxy", "-v"],
    needs: &["/usr/bin/python3"],
    what: "6 clients; the server has maxconn 1 and takes 30 ms for each request",
    accepted: &[
        ("worker-pool-full", "the one connection is busy, requests queue"),
        ("slow-peer", "it is busy because the other process takes 30 ms"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (_backend, backend) = slow_backend(stage, 30);
    let (server, port) = haproxy(stage, &format!("server one 127.0.0.1:{backend} maxconn 1"));
    let load = Load::start(6, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let times = haproxy_times(&logged);
    let queue: f64 = times.iter().map(|times| times[1]).sum::<f64>() / 1e3;
    let answer: f64 = times.iter().map(|times| times[3]).sum::<f64>() / 1e3;
    let text = format!(
        "the log's timers: Tw (queue) {queue:.1} s, Tr (the server's answer) {answer:.1} s; {}",
        load.end()
    );
    Truth { text, lost_s: queue + answer }
}
