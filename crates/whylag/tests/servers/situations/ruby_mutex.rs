//! A mutex of Ruby whose holder sleeps.

use crate::load::{Load, Request};
use crate::runtimes::{ruby, ruby_waited_s};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "ruby_mutex",
    software: "Ruby",
    version: &["ruby", "--version"],
    needs: &[],
    what: "6 clients; each request sleeps for 5 ms in Mutex#synchronize",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = ruby(stage, "mutex");
    let load = Load::start(6, Duration::from_millis(5), &Request::line(port, "hello", "ok\n"));
    stage.warm_up();
    let before = ruby_waited_s(port);
    stage.record(&server);
    let lost_s = ruby_waited_s(port) - before;
    let latencies = load.end();
    let text = format!(
        "the threads' own sum of waits for the mutex: {lost_s:.1} s; the holder sleeps; {latencies}"
    );
    Truth { text, lost_s }
}
