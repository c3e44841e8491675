//! dnsmasq under a light load.

use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::process::Stdio;

pub static SITUATION: Situation = Situation {
    name: "dnsmasq_healthy",
    software: "dnsmasq",
    version: &["dnsmasq", "--version"],
    needs: &["dnsperf"],
    what: "dnsperf asks 500 times a second for a name that is known",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    let pid = format!("--pid-file={folder}/pid");
    let number = format!("--port={port}");
    let server = stage.server(
        &[
            "dnsmasq",
            "--no-daemon",
            "--conf-file=/dev/null",
            "--no-resolv",
            "--no-hosts",
            "--bind-interfaces",
            "--listen-address=127.0.0.1",
            "--user=nobody",
            "--address=/example.test/127.0.0.1",
            &number,
            &pid,
        ],
        port,
    );
    let names = stage.file("names", "www.example.test A\n");
    let words = [
        "dnsperf",
        "-s",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-d",
        &names,
        "-Q",
        "500",
        "-l",
        "5",
        "-c",
        "4",
        "-T",
        "1",
    ];
    let mut load = stage.start(command(&words).stdin(Stdio::null()));
    stage.warm_up();
    stage.record(&server);
    load.child.wait().unwrap();
    let log = stage.read("log");
    let latency = log.lines().find(|line| line.contains("Average Latency")).unwrap_or("?");
    Truth::healthy(format!("dnsperf: {}", latency.split_whitespace().collect::<Vec<_>>().join(" ")))
}
