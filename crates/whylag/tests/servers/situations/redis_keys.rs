//! An O(n) command in Redis' event loop.

use std::time::Duration;

use crate::load::{Load, Request};
use crate::peers::Repeated;
use crate::servers::{redis, redis_cli};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "redis_keys",
    software: "Redis",
    version: &["redis-server", "--version"],
    needs: &["redis-cli"],
    what: "4 clients GET; another one asks for KEYS of a million every 200 ms",
    accepted: &[
        ("event-loop-blocked", "one thread reads all sockets, and one command keeps it busy"),
        ("queueing", "messages wait while the thread works on the one before"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let slow = ["--slowlog-log-slower-than", "5000", "--enable-debug-command", "local"];
    let (redis, port) = redis(stage, &slow);
    let cli = |stage: &Stage, words: &[&str]| redis_cli(stage, port, words);
    cli(stage, &["DEBUG", "POPULATE", "1000000"]);
    let load = Load::start(4, Duration::from_millis(5), &Request::line(port, "GET key:7", "\r\n"));
    let keys = Request::line(port, "KEYS nosuch*", "*0\r\n");
    let _keys = Repeated::start(move || {
        keys.ask();
        std::thread::sleep(Duration::from_millis(200));
    });
    stage.warm_up();
    cli(stage, &["SLOWLOG", "RESET"]);
    stage.record(&redis);
    let slow = cli(stage, &["SLOWLOG", "GET", "1000"]);
    // Of each entry: number, time, microseconds, command, ...
    let lines: Vec<&str> = slow.lines().collect();
    let keys = lines.iter().enumerate().filter(|(_, line)| **line == "KEYS");
    let took: Vec<u64> = keys.map(|(at, _)| lines[at - 1].parse().unwrap()).collect();
    let latencies = load.end();
    let lost_s = took.iter().sum::<u64>() as f64 / 1e6;
    let text = format!(
        "SLOWLOG: {} KEYS ran for {lost_s:.2} s in the event loop; GETs wait for it: {latencies}",
        took.len()
    );
    Truth { text, lost_s }
}
