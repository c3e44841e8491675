//! A cache that has what is asked for.

use crate::load::{Load, Request};
use crate::peers::slow_backend;
use crate::servers::varnish;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "varnish_healthy",
    software: "Varnish",
    version: &["varnishd", "-V"],
    needs: &["/usr/bin/python3", "cc"],
    what: "8 clients fetch a page that the cache has",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (_backend, backend) = slow_backend(stage, 30);
    let (server, port) =
        varnish(stage, backend, "sub vcl_backend_response { set beresp.ttl = 1h; }");
    Request::get(port, "/").ask();
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    stage.warm_up();
    stage.record(&server);
    Truth::healthy(load.end().to_string())
}
