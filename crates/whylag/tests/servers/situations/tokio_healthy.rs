//! A server of Rust's tokio under a light load.

use crate::load::{Load, Request};
use crate::runtimes::{tokio, tokio_waited_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "tokio_healthy",
    software: "Rust tokio",
    version: &["cargo", "--version"],
    needs: &[],
    what: "8 clients, each answer at once; each request takes a mutex that nobody keeps",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = tokio(stage, "healthy");
    let load = Load::start(8, Duration::from_millis(10), &Request::line(port, "hello", "\n"));
    stage.warm_up();
    let before = tokio_waited_s(port);
    stage.record(&server);
    let waited = tokio_waited_s(port) - before;
    Truth::healthy(format!("waits for the mutex: {waited:.3} s; {}", load.end()))
}
