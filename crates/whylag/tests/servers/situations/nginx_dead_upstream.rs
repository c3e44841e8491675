//! A proxy one of whose upstreams does not answer when it is connected to.

use std::time::Duration;

use crate::load::{Load, Request};
use crate::peers::{dead_backend, slow_backend};
use crate::servers::nginx;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "nginx_dead_upstream",
    software: "nginx",
    version: &["nginx", "-v"],
    needs: &["/usr/bin/python3"],
    what: "4 clients; of two upstreams one drops all packets, and is given up after 0.9 s",
    accepted: &[("connect-timeout", "nginx has no answer to its SYN")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (_dead, dead) = dead_backend(stage);
    let (_backend, backend) = slow_backend(stage, 1);
    let servers = [dead, backend].map(|port| format!("server 127.0.0.1:{port} max_fails=0;"));
    let http = format!("upstream both {{ {} }} proxy_connect_timeout 900ms;", servers.concat());
    let log = stage.path("access");
    let proxy = format!("access_log {log} times; location / {{ proxy_pass http://both; }}");
    let (server, port) = nginx(stage, 1, &http, &proxy);
    let load = Load::start(4, Duration::from_millis(10), &Request::get(port, "/"));
    stage.warm_up();
    let before = stage.read("access").lines().count();
    stage.record(&server);
    let access = stage.read("access");
    let took =
        access.lines().skip(before).filter_map(|line| line.split(' ').next()?.parse::<f64>().ok());
    let lost_s: f64 = took.filter(|took| *took >= 0.9).sum();
    let text = format!("$request_time of requests that took 0.9 s: {lost_s:.1} s; {}", load.end());
    Truth { text, lost_s }
}
