//! Calls that block, given to an executor with two threads.

use std::time::Duration;

use crate::load::{Load, Request};
use crate::process::Process;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "python_executor_full",
    software: "Python asyncio",
    version: &["/usr/bin/python3", "--version"],
    needs: &[],
    what: "10 clients; a server gives each request to an executor with 2 threads, where it takes 40 ms \
           (run_in_executor; a call that blocks), and the event loop is free",
    accepted: &[(
        "worker-pool-full",
        "both threads are busy, requests wait in the executor's line",
    )],
    play,
};

/// Its own sum of the time from when a request is given to the executor to when a thread has it.
const SERVER: &str = r#"
import asyncio, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(int(sys.argv[2]))
lock = threading.Lock()
waited = 0.0

def work(given):
    global waited
    with lock:
        waited += time.monotonic() - given
    time.sleep(0.04)

async def handle(reader, writer):
    loop = asyncio.get_running_loop()
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            body = b"ok"
            if head.startswith(b"GET /waited"):
                body = str(waited).encode()
            else:
                await loop.run_in_executor(pool, work, time.monotonic())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    except asyncio.IncompleteReadError:
        writer.close()

async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"#;

/// The server with so many threads, and its port.
pub(super) fn executor(stage: &mut Stage, threads: usize) -> (Process, u16) {
    let source = stage.file("server.py", SERVER);
    let port = stage.port();
    let (number, threads) = (port.to_string(), threads.to_string());
    (stage.server(&["/usr/bin/python3", "-u", &source, &number, &threads], port), port)
}

/// What all requests have waited for a thread up to now, s.
pub(super) fn waited_s(port: u16) -> f64 {
    let answer = Request::get(port, "/waited").ask();
    answer.rsplit("\r\n").next().unwrap().parse().unwrap()
}

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = executor(stage, 2);
    let load = Load::start(10, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    let before = waited_s(port);
    stage.record(&server);
    let lost_s = waited_s(port) - before;
    let text =
        format!("the server's own sum: requests waited {lost_s:.1} s for a thread; {}", load.end());
    Truth { text, lost_s }
}
