//! A mutex of Go whose holder sleeps.

use crate::load::{Load, Request};
use crate::runtimes::{go, go_waited_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "go_mutex",
    software: "Go net/http",
    version: &["go", "version"],
    needs: &[],
    what: "8 clients; each request holds a sync.Mutex for 15 ms of time.Sleep",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = go(stage, &["slow"]);
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    stage.warm_up();
    let before = go_waited_s(port);
    stage.record(&server);
    let lost_s = go_waited_s(port) - before;
    let text = format!("runtime/metrics /sync/mutex/wait/total: {lost_s:.1} s; {}", load.end());
    Truth { text, lost_s }
}
