//! A synchronous call in an event loop of asyncio.

use std::time::Duration;

use crate::load::{Load, Request};
use crate::peers::slow_backend;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "python_asyncio_sync",
    software: "Python asyncio",
    version: &["/usr/bin/python3", "--version"],
    needs: &[],
    what: "a server answers from its event loop; every 8th request calls a backend that takes 100 ms with urllib, without await",
    accepted: &[
        ("event-loop-blocked", "one thread reads all sockets, and a synchronous call stops it"),
        ("slow-peer", "what it waits for is the answer of another process on this host"),
    ],
    play,
};

/// asyncio itself logs callbacks of more than 50 ms (debug mode).
const SERVER: &str = r#"
import asyncio, logging, sys, urllib.request

logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
count = 0

async def handle(reader, writer):
    global count
    while await reader.readuntil(b"\r\n\r\n"):
        count += 1
        if count % 8 == 0:
            urllib.request.urlopen("http://127.0.0.1:" + sys.argv[2]).read()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")

async def main():
    asyncio.get_running_loop().slow_callback_duration = 0.05
    server = await asyncio.start_server(handle, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main(), debug=True)
"#;

fn play(stage: &mut Stage) -> Truth {
    let (_backend, backend) = slow_backend(stage, 100);
    let source = stage.file("server.py", SERVER);
    let port = stage.port();
    let (number, backend) = (port.to_string(), backend.to_string());
    let server = stage.server(&["/usr/bin/python3", "-u", &source, &number, &backend], port);
    let load = Load::start(6, Duration::from_millis(20), &Request::get(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let took = logged.lines().filter_map(|line| {
        line.strip_prefix("Executing ")?.rsplit_once(" took ")?.1.strip_suffix(" seconds")
    });
    let took: Vec<f64> = took.map(|seconds| seconds.parse().unwrap()).collect();
    let lost_s = took.iter().sum::<f64>();
    let latencies = load.end();
    let text = format!(
        "asyncio's log: {} callbacks blocked the loop for {lost_s:.2} s: {latencies}",
        took.len()
    );
    Truth { text, lost_s }
}
