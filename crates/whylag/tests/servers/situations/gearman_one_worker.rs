//! A queue of jobs whose clients wait for the one worker.

use crate::load::{Answer, Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};
use std::time::Duration;

use crate::common::wait_until;

pub static SITUATION: Situation = Situation {
    name: "gearman_one_worker",
    software: "gearmand",
    version: &["gearmand", "--version"],
    needs: &["gearadmin", "/usr/bin/python3"],
    what: "6 clients send a job each and wait for its end; one worker, which takes 30 ms for each, has \
           connected to the server",
    accepted: &[
        ("slow-peer", "what is waited for is the answer of another process, the worker"),
        ("worker-pool-full", "the one worker is busy, jobs queue for it"),
    ],
    play,
};

/// CAN_DO, then GRAB_JOB until there is one, or PRE_SLEEP until a NOOP says so.
const WORKER: &str = r#"
import socket, struct, sys, time

peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

def send(kind, data=b""):
    peer.sendall(b"\0REQ" + struct.pack(">II", kind, len(data)) + data)

def exactly(length):
    data = b""
    while len(data) < length:
        more = peer.recv(length - len(data))
        if not more:
            sys.exit()
        data += more
    return data

def receive():
    _, kind, length = struct.unpack(">4sII", exactly(12))
    return kind, exactly(length)

CAN_DO, PRE_SLEEP, GRAB_JOB, NO_JOB, JOB_ASSIGN, WORK_COMPLETE = 1, 4, 9, 10, 11, 13
send(CAN_DO, b"work")
send(GRAB_JOB)
while True:
    kind, data = receive()
    if kind == NO_JOB:
        send(PRE_SLEEP)
    elif kind == JOB_ASSIGN:
        time.sleep(0.03)
        send(WORK_COMPLETE, data.split(b"\0")[0] + b"\0finished")
        send(GRAB_JOB)
    else:
        send(GRAB_JOB)
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let number = port.to_string();
    let words = ["gearmand", "-L", "127.0.0.1", "-p", &number, "-l", "stderr", "--threads", "2"];
    let server = stage.server(&words, port);
    let worker = stage.file("worker.py", WORKER);
    let _worker = stage.client(&format!("/usr/bin/python3 {worker} {port}"));
    wait_until("the worker", || status(stage, &number)[2] == 1);
    // SUBMIT_JOB: function, unique, data.
    let data = "work\0\0data";
    let text = format!("\0REQ\0\0\0\u{7}\0\0\0{}{data}", data.len() as u8 as char);
    let request = Request { port, text, round: 1, answer: Answer::Ends("finished") };
    let load = Load::start(6, Duration::from_millis(5), &request);
    stage.warm_up();
    stage.record(&server);
    let [jobs, running, workers] = status(stage, &number);
    let latencies = load.end();
    // What each of the six waited beyond the 30 ms of its own job.
    let p50 = latencies.quantile(0.5).as_secs_f64();
    let lost_s = 6.0 * WATCHED.as_secs_f64() * (p50 - 0.03).max(0.0) / (p50 + 0.005);
    let text = format!(
        "gearadmin --status: {jobs} jobs at once, {running} of them at work, {workers} worker; {latencies}"
    );
    Truth { text, lost_s }
}

/// Jobs, those at work, and workers of the function.
fn status(stage: &Stage, port: &str) -> [u32; 3] {
    let status = stage.run(&["gearadmin", "-p", port, "--status"]);
    let line = status.lines().find(|line| line.starts_with("work\t")).unwrap_or("\t0\t0\t0");
    let mut numbers = line.split('\t').skip(1).map(|number| number.trim().parse().unwrap());
    [0; 3].map(|_| numbers.next().unwrap())
}
