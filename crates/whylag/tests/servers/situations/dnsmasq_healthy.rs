//! dnsmasq under a light load.

use crate::process::words;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

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
    let line = format!(
        "dnsmasq --no-daemon --conf-file=/dev/null --no-resolv --no-hosts --bind-interfaces \
         --listen-address=127.0.0.1 --user=nobody --address=/example.test/127.0.0.1 --port={port} \
         --pid-file={folder}/pid"
    );
    let server = stage.server(&words(&line), port);
    let names = stage.file("names", "www.example.test A\n");
    let asks = format!("dnsperf -s 127.0.0.1 -p {port} -d {names} -c 4 -T 1 -Q 500 -l 5");
    let mut load = stage.client(&asks);
    stage.warm_up();
    stage.record(&server);
    load.child.wait().unwrap();
    let log = stage.read("log");
    let latency = log.lines().find(|line| line.contains("Average Latency")).unwrap_or("?");
    Truth::healthy(format!("dnsperf: {}", latency.split_whitespace().collect::<Vec<_>>().join(" ")))
}
