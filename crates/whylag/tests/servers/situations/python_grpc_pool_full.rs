//! A gRPC server whose handlers run on two threads, while several others of the library read.

use std::process::Stdio;

use crate::process::{Process, command};
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};

pub static SITUATION: Situation = Situation {
    name: "python_grpc_pool_full",
    software: "gRPC in Python",
    version: &["/usr/bin/python3", "-c", "import grpc; print(grpc.__version__)"],
    needs: &["/usr/lib/python3/dist-packages/grpc/__init__.py"],
    what: "8 clients of a gRPC server whose handlers take 20 ms each on a ThreadPoolExecutor of 2",
    accepted: &[(
        "worker-pool-full",
        "both threads are busy, requests wait in the executor's line",
    )],
    play,
};

/// Prints for each request how long it waited for a thread, s.
const SERVER: &str = r#"
import sys, time
from concurrent import futures
import grpc

class Counted(futures.ThreadPoolExecutor):
    def submit(self, function, *arguments, **named):
        given = time.monotonic()
        def counted():
            print("waited", time.monotonic() - given, flush=True)
            return function(*arguments, **named)
        return super().submit(counted)

def handle(request, context):
    time.sleep(0.02)
    return b"ok"

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(handle)

server = grpc.server(Counted(int(sys.argv[2])))
server.add_generic_rpc_handlers((Handler(),))
server.add_insecure_port("127.0.0.1:" + sys.argv[1])
server.start()
server.wait_for_termination()
"#;

const CLIENTS: &str = r#"
import sys, threading
import grpc

def ask():
    own = [("grpc.use_local_subchannel_pool", 1)]
    call = grpc.insecure_channel("127.0.0.1:" + sys.argv[1], options=own).unary_unary("/any/call")
    while True:
        call(b"?")

threads = [threading.Thread(target=ask) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
"#;

/// The server with so many threads for handlers, and 8 clients at it.
pub(super) fn served(stage: &Stage, threads: usize) -> (Process, Process) {
    let (server, clients) = (stage.file("server.py", SERVER), stage.file("clients.py", CLIENTS));
    let (port, threads) = (stage.port(), threads.to_string());
    let number = port.to_string();
    let server = stage.server(&["/usr/bin/python3", "-u", &server, &number, &threads], port);
    let clients = ["/usr/bin/python3", &clients, &number, "8"];
    (server, stage.start(command(&clients).stdin(Stdio::null())))
}

/// Requests and what they waited for a thread, s, by the server's log.
pub(super) fn waited(log: &str) -> (usize, f64) {
    let waits = log.lines().filter_map(|line| line.strip_prefix("waited ")?.parse::<f64>().ok());
    let waits: Vec<f64> = waits.collect();
    (waits.len(), waits.iter().sum())
}

fn play(stage: &mut Stage) -> Truth {
    let (server, _clients) = served(stage, 2);
    stage.warm_up();
    let (requests, lost_s) = waited(&stage.record(&server));
    let text = format!(
        "the server's own sum: {requests} requests in about {} s waited {lost_s:.1} s for a thread",
        WATCHED.as_secs()
    );
    Truth { text, lost_s }
}
