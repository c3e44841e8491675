//! Programs that take the CPUs from a server.

use crate::load::{Load, Request};
use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::process::Stdio;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "node_neighbours",
    software: "Node.js http",
    version: &["node", "--version"],
    needs: &["sh"],
    what: "6 clients; a request computes for some ms; four other programs spin on two CPUs",
    accepted: &[("cpu-runqueue", "ready to run, and something else is on the CPU")],
    play,
};

const SERVER: &str = r#"
require('http').createServer((request, response) => {
  let sum = 0;
  for (let i = 0; i < 2000000; i++) sum += i % 7;
  response.end(sum + '\n');
}).listen(+process.argv[2], '127.0.0.1');
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let source = stage.file("server.js", SERVER);
    let server = stage.server(&["node", &source, &port.to_string()], port);
    let spin = || stage.start(command(&["sh", "-c", "while :; do :; done"]).stdin(Stdio::null()));
    let _neighbours: Vec<_> = (0..4).map(|_| spin()).collect();
    let load = Load::start(6, Duration::from_millis(20), &Request::get(port, "/"));
    // Nanoseconds on a CPU, and ready to run without one.
    let delayed_s = || {
        let schedstat = std::fs::read_to_string(format!("/proc/{}/schedstat", server.pid()));
        let delayed = schedstat.unwrap().split(' ').nth(1).unwrap().parse::<f64>();
        delayed.unwrap() / 1e9
    };
    stage.warm_up();
    let before = delayed_s();
    stage.record(&server);
    let lost_s = delayed_s() - before;
    let text = format!(
        "/proc/PID/schedstat: the main thread was ready and without a CPU for {lost_s:.2} s; {}",
        load.end()
    );
    Truth { text, lost_s }
}
