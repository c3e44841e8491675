//! A mutex of tokio whose holder sleeps.

use crate::load::{Load, Request};
use crate::runtimes::{tokio, tokio_waited_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "tokio_mutex",
    software: "Rust tokio",
    version: &["cargo", "--version"],
    needs: &[],
    what: "8 clients; each request holds a tokio::sync::Mutex for 15 ms of tokio::time::sleep",
    accepted: &[("turn-taking", "one at a time has what the others wait for")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = tokio(stage, "mutex");
    let load = Load::start(8, Duration::from_millis(10), &Request::line(port, "hello", "\n"));
    stage.warm_up();
    let before = tokio_waited_s(port);
    stage.record(&server);
    let lost_s = tokio_waited_s(port) - before;
    let text =
        format!("the server's own sum of waits for the mutex: {lost_s:.1} s; {}", load.end());
    Truth { text, lost_s }
}
