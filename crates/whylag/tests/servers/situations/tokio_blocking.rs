//! A call that blocks in an async function.

use crate::load::{Load, Request};
use crate::runtimes::{tokio, tokio_waited_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "tokio_blocking",
    software: "Rust tokio",
    version: &["cargo", "--version"],
    needs: &[],
    what: "8 clients; each request makes a call that blocks its thread for 10 ms; tokio has 2 threads",
    accepted: &[
        ("event-loop-blocked", "the threads that poll all sockets block in a call"),
        ("worker-pool-full", "all threads of the runtime are busy while requests wait"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = tokio(stage, "blocking");
    let load = Load::start(8, Duration::from_millis(5), &Request::line(port, "hello", "\n"));
    stage.warm_up();
    let before = tokio_waited_s(port);
    stage.record(&server);
    let lost_s = tokio_waited_s(port) - before;
    let text = format!("the server's own sum of the blocking calls: {lost_s:.1} s; {}", load.end());
    Truth { text, lost_s }
}
