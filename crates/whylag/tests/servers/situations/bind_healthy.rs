//! BIND under a light load.

use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "bind_healthy",
    software: "BIND",
    version: &["named", "-v"],
    needs: &["dnsperf"],
    what: "dnsperf asks 500 times a second for a name that is known",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    stage.file("zone", "$TTL 60\n@ IN SOA ns hostmaster 1 60 60 60 60\n@ IN NS ns\nns IN A 127.0.0.1\nwww IN A 127.0.0.1\n");
    let text = format!(
        "options {{ directory \"{folder}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; pid-file \"{folder}/pid\"; \
         session-keyfile \"{folder}/session.key\"; recursion no; dnssec-validation no; }};\ncontrols {{ }};\n\
         zone \"example.test\" {{ type primary; file \"{folder}/zone\"; }};\n"
    );
    let configuration = stage.file("named.conf", &text);
    let server = stage.server(&["named", "-f", "-c", &configuration], port);
    let names = stage.file("names", "www.example.test A\n");
    let line = format!("dnsperf -s 127.0.0.1 -p {port} -d {names} -c 4 -T 1 -Q 500 -l 5");
    let mut load = stage.client(&line);
    stage.warm_up();
    stage.record(&server);
    load.child.wait().unwrap();
    let log = stage.read("log");
    let latency = log.lines().find(|line| line.contains("Average Latency")).unwrap_or("?");
    Truth::healthy(format!("dnsperf: {}", latency.split_whitespace().collect::<Vec<_>>().join(" ")))
}
