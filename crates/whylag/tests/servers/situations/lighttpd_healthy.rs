//! lighttpd under a light load.

use crate::load::{Load, Request};
use crate::servers::lighttpd;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "lighttpd_healthy",
    software: "lighttpd",
    version: &["lighttpd", "-v"],
    needs: &[],
    what: "8 clients fetch a small file",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = lighttpd(stage);
    let load = Load::start(8, Duration::from_millis(8), &Request::get(port, "/hello"));
    stage.warm_up();
    stage.record(&server);
    Truth::healthy(load.end().to_string())
}
