//! An access log that goes to a pipe whose reader is slow.

use crate::load::{Load, Request};
use crate::process::command;
use crate::servers::nginx;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::process::Stdio;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "nginx_log_pipe",
    software: "nginx",
    version: &["nginx", "-v"],
    needs: &["mkfifo", "/usr/bin/python3"],
    what: "4 clients fetch a small file; access_log is a named pipe, of which 50 lines are read a second",
    accepted: &[
        ("blocked-log-pipe", "write() to a full pipe waits for its reader"),
        ("event-loop-blocked", "the write is in the thread that reads all sockets"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    stage.file("hello", "hello\n");
    let pipe = stage.path("pipe");
    stage.run(&["mkfifo", "-m", "666", &pipe]);
    let source = "import sys, time\nfor line in open(sys.argv[1], buffering=1):\n    print('read', flush=True)\n    time.sleep(0.02)\n";
    let reader = stage.file("reader.py", source);
    let _reader =
        stage.start(command(&["/usr/bin/python3", "-u", &reader, &pipe]).stdin(Stdio::null()));
    let format = format!("log_format long '$request {}';", "-".repeat(2000));
    let (server, port) = nginx(stage, 1, &format, &format!("access_log {pipe} long;"));
    let load = Load::start(4, Duration::from_millis(1), &Request::get(port, "/hello"));
    stage.warm_up();
    let read = stage.record(&server).lines().filter(|line| *line == "read").count();
    let latencies = load.end();
    let lost_s = read as f64 * 0.02;
    let text = format!(
        "the reader read {read} lines, one in 20 ms, and nginx, whose worker logs before it goes on, served {latencies}"
    );
    Truth { text, lost_s }
}
