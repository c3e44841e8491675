//! A proxy whose upstream is slow.

use crate::load::{Load, Request};
use crate::peers::slow_backend;
use crate::servers::nginx;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "nginx_slow_upstream",
    software: "nginx",
    version: &["nginx", "-v"],
    needs: &["/usr/bin/python3"],
    what: "8 clients; the upstream takes 80 ms for each request",
    accepted: &[("slow-peer", "requests wait for the answer of another process on this host")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (_backend, backend) = slow_backend(stage, 80);
    let http = format!("upstream slow {{ server 127.0.0.1:{backend}; keepalive 16; }}");
    let proxy = "location / { proxy_pass http://slow; proxy_http_version 1.1; proxy_set_header Connection ''; }";
    let log = stage.path("access");
    let (server, port) = nginx(stage, 1, &http, &format!("access_log {log} times; {proxy}"));
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    stage.warm_up();
    let before = stage.read("access").lines().count();
    stage.record(&server);
    let access = stage.read("access");
    let rows = access.lines().skip(before).map(|line| {
        line.split(' ').map(|word| word.parse::<f64>().unwrap_or(0.0)).collect::<Vec<_>>()
    });
    let (all, upstream) = rows.fold((0.0, 0.0), |sum, row| (sum.0 + row[0], sum.1 + row[1]));
    let text = format!(
        "$request_time {all:.1} s, of that $upstream_response_time {upstream:.1} s; {}",
        load.end()
    );
    Truth { text, lost_s: upstream }
}
