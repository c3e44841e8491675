//! A cache that fetches one at a time what may not be cached.

use crate::load::{Load, Request};
use crate::peers::slow_backend;
use crate::servers::{varnish, varnish_counter, varnish_times};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "varnish_serialized",
    software: "Varnish",
    version: &["varnishd", "-V"],
    needs: &["varnishncsa", "varnishstat", "/usr/bin/python3", "cc"],
    what: "8 clients ask for one object, which lives for no time (ttl 0 without hit-for-miss), so that \
           requests fetch it one after another; the backend takes 30 ms",
    accepted: &[
        (
            "turn-taking",
            "one request at a time fetches, the others are on the object's waiting list",
        ),
        ("slow-peer", "whoever has the turn waits for another process, which takes 30 ms"),
    ],
    play,
};

/// Without the built-in subroutine, which would mark the object as not cacheable.
const VCL: &str = "sub vcl_backend_response {
    set beresp.ttl = 0s; set beresp.grace = 0s; set beresp.keep = 0s; return (deliver);
}";

fn play(stage: &mut Stage) -> Truth {
    let (_backend, backend) = slow_backend(stage, 30);
    let (server, port) = varnish(stage, backend, VCL);
    let load = Load::start(8, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    let (logger, slept) = (varnish_times(stage), on_waiting_list(stage));
    stage.record(&server);
    let slept = on_waiting_list(stage) - slept;
    // It writes the last of them as it ends.
    drop(logger);
    let times = stage.read("times");
    let times: Vec<f64> = times.lines().filter_map(|line| line.parse().ok()).collect();
    let lost_s = times.iter().sum::<f64>();
    let text = format!(
        "varnishncsa: {} requests waited {lost_s:.1} s for their first byte, 30 ms of each for the \
         backend; MAIN.busy_sleep: {slept} went to a waiting list; {}",
        times.len(),
        load.end()
    );
    Truth { text, lost_s }
}

/// Requests that were put on a waiting list.
fn on_waiting_list(stage: &Stage) -> u64 {
    varnish_counter(stage, "MAIN.busy_sleep")
}
