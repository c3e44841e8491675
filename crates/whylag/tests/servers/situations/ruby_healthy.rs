//! Threads of Ruby under a light load.

use crate::load::{Load, Request};
use crate::runtimes::{ruby, ruby_waited_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "ruby_healthy",
    software: "Ruby",
    version: &["ruby", "--version"],
    needs: &[],
    what: "8 clients, 800 requests a second, a thread for each",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = ruby(stage, "healthy");
    let load = Load::start(8, Duration::from_millis(10), &Request::line(port, "hello", "ok\n"));
    stage.warm_up();
    let before = ruby_waited_s(port);
    stage.record(&server);
    let waited_s = ruby_waited_s(port) - before;
    Truth::healthy(format!("waited for the mutex for {waited_s:.3} s in all; {}", load.end()))
}
