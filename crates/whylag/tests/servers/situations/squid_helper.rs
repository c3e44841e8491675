//! A proxy that asks one helper process whether each request is allowed.

use crate::load::{Load, Request};
use crate::servers::lighttpd;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "squid_helper",
    software: "Squid",
    version: &["squid", "-v"],
    needs: &["lighttpd", "/usr/bin/python3"],
    what: "6 clients; each request is allowed by the one helper (external_acl_type), which takes 20 ms",
    accepted: &[
        ("slow-peer", "what is waited for is the answer of another process, the helper"),
        ("worker-pool-full", "the one helper is busy, lookups queue for it"),
        ("turn-taking", "one request at a time has the helper, the others wait for it"),
    ],
    play,
};

const HELPER: &str = r#"
import sys, time

asked = open("asked", "a")
for line in sys.stdin:
    began = time.monotonic()
    time.sleep(0.02)
    print("OK", flush=True)
    print(time.monotonic() - began, file=asked, flush=True)
"#;

fn play(stage: &mut Stage) -> Truth {
    let (_origin, origin) = lighttpd(stage);
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    stage.file("access", "");
    let helper = stage.file("helper.py", HELPER);
    let text = format!(
        "http_port 127.0.0.1:{port}\npid_filename none\ncache_log {folder}/cache.log\n\
         access_log stdio:{folder}/access\nlogfile_rotate 0\ncoredump_dir {folder}\ncache deny all\nnetdb_filename none\n\
         external_acl_type check ttl=0 negative_ttl=0 cache=0 children-max=1 children-startup=1 \
         concurrency=0 queue-size=1000 %URI /usr/bin/python3 {helper}\n\
         acl checked external check\nhttp_access allow checked\nhttp_access deny all\n\
         visible_hostname localhost\nbuffered_logs off\n"
    );
    let configuration = stage.file("squid.conf", &text);
    let server = stage.server(&["squid", "-N", "-f", &configuration], port);
    let mut request =
        Request::get(port, &format!("http://127.0.0.1:{origin}/hello")).round(1_000_000);
    request.text = request.text.replace("/hello", "/hello?{n}");
    let load = Load::start(6, Duration::from_millis(5), &request);
    stage.warm_up();
    let [access, asked] = ["access", "asked"].map(|file| stage.read(file).len());
    stage.record(&server);
    let [access, asked] =
        [("access", access), ("asked", asked)].map(|(file, from)| stage.read(file).split_off(from));
    // Time, and milliseconds until it was answered.
    let took =
        access.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    let lost_s = took.sum::<f64>() / 1e3;
    let helped: f64 = asked.lines().filter_map(|line| line.parse::<f64>().ok()).sum();
    let text = format!(
        "access log: {} requests took {lost_s:.1} s, while the helper was busy for {helped:.1} s with \
         {} lookups, one at a time; {}",
        access.lines().count(),
        asked.lines().count(),
        load.end()
    );
    Truth { text, lost_s }
}
