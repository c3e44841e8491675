//! The threads to which Node gives what would block its event loop.

use crate::load::{Load, Request};
use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::process::Stdio;
use std::time::Duration;

use crate::common::wait_until;

pub static SITUATION: Situation = Situation {
    name: "node_threadpool",
    software: "Node.js http",
    version: &["node", "--version"],
    needs: &[],
    what: "6 clients; each request hashes a password with pbkdf2 (not Sync), for which libuv has one \
           thread (UV_THREADPOOL_SIZE=1); the event loop is free",
    accepted: &[
        ("worker-pool-full", "the one thread of the pool is busy, requests queue for it"),
        ("turn-taking", "one request at a time has the thread that the others wait for"),
    ],
    play,
};

const SERVER: &str = r#"
const http = require('http'), crypto = require('crypto');
const { performance, monitorEventLoopDelay } = require('perf_hooks');
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
let waited = 0, alone = Infinity;
http.createServer((request, response) => {
  if (request.url === '/waited')
    return response.end(JSON.stringify({ waited, alone, loop: delay.percentile(99) / 1e6 }) + '\n');
  const began = performance.now();
  crypto.pbkdf2('secret', 'salt', 12000, 64, 'sha512', () => {
    const took = performance.now() - began;
    alone = Math.min(alone, took);
    waited += (took - alone) / 1e3;
    response.end('ok\n');
  });
}).listen(+process.argv[2], '127.0.0.1');
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let source = stage.file("server.js", SERVER);
    let mut node = command(&["node", &source, &port.to_string()]);
    let server = stage.start(node.env("UV_THREADPOOL_SIZE", "1").stdin(Stdio::null()));
    wait_until("Node", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    for _ in 0..10 {
        Request::get_once(port, "/").ask();
    }
    let load = Load::start(6, Duration::from_millis(5), &Request::get_once(port, "/"));
    stage.warm_up();
    let before = said(port);
    stage.record(&server);
    let after = said(port);
    let lost_s = after[0] - before[0];
    let text = format!(
        "performance.now: requests waited {lost_s:.1} s beyond the {:.1} ms that a hash takes alone; \
         monitorEventLoopDelay: p99 {:.1} ms (asked every 5 ms); {}",
        after[1],
        after[2],
        load.end()
    );
    Truth { text, lost_s }
}

/// Seconds waited beyond the hash, and in ms what a hash takes and the loop's delay.
fn said(port: u16) -> [f64; 3] {
    let answer = Request::get_once(port, "/waited").ask();
    let said: serde_json::Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
    ["waited", "alone", "loop"].map(|key| said[key].as_f64().unwrap())
}
