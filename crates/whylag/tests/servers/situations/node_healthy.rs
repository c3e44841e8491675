//! Node under a light load.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "node_healthy",
    software: "Node.js http",
    version: &["node", "--version"],
    needs: &[],
    what: "6 clients, each answer at once",
    accepted: &[],
    play,
};

const SERVER: &str = r#"
const http = require('http'), crypto = require('crypto');
const { monitorEventLoopDelay, performance } = require('perf_hooks');
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
let count = 0, blocked = 0;
http.createServer((request, response) => {
  if (request.url === '/delay')
    return response.end(JSON.stringify({ blocked, max: delay.max / 1e6, p50: delay.percentile(50) / 1e6 }) + '\n');
  if (process.argv[3] === 'sync' && ++count % 10 === 0) {
    const began = performance.now();
    crypto.pbkdf2Sync('secret', 'salt', 120000, 64, 'sha512');
    blocked += (performance.now() - began) / 1e3;
  }
  response.end('ok\n');
}).listen(+process.argv[2], '127.0.0.1');
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let source = stage.file("server.js", SERVER);
    let server = stage.server(&["node", &source, &port.to_string(), ""], port);
    let load = Load::start(6, Duration::from_millis(15), &Request::get(port, "/"));
    let delay = || {
        let answer = Request::get_once(port, "/delay").ask();
        serde_json::from_str::<serde_json::Value>(answer.lines().last().unwrap()).unwrap()
    };
    stage.warm_up();
    stage.record(&server);
    let after = delay();
    Truth::healthy(format!(
        "monitorEventLoopDelay: p50 {:.1} ms; {}",
        after["p50"].as_f64().unwrap(),
        load.end()
    ))
}
