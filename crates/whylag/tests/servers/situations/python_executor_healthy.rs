//! Calls that block, given to an executor that has a thread for each.

use std::time::Duration;

use super::python_executor_full::{executor, waited_s};
use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "python_executor_healthy",
    software: "Python asyncio",
    version: &["/usr/bin/python3", "--version"],
    needs: &[],
    what: "10 clients; a server gives each request to an executor with 16 threads, where it takes 40 ms",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = executor(stage, 16);
    let load = Load::start(10, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    let before = waited_s(port);
    stage.record(&server);
    let waited = waited_s(port) - before;
    Truth::healthy(format!("requests waited {waited:.2} s for a thread; {}", load.end()))
}
