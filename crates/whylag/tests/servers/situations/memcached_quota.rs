//! A CPU quota of the server's cgroup.

use crate::load::{Load, Request};
use crate::peers::Quota;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "memcached_quota",
    software: "memcached",
    version: &["memcached", "-V"],
    needs: &[],
    what: "8 clients GET from a server that may use a tenth of a CPU",
    accepted: &[("cgroup-throttle", "the quota takes the threads off the CPU")],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let number = port.to_string();
    let server = stage.server(&["memcached", "-l", "127.0.0.1", "-p", &number, "-t", "4"], port);
    let Some(quota) = Quota::of_cpu(0.1) else {
        return Truth { text: "no cgroup with a CPU controller here".to_owned(), lost_s: 0.0 };
    };
    quota.take(server.pid());
    let load = Load::start(8, Duration::ZERO, &Request::line(port, "get nothing", "END\r\n"));
    stage.warm_up();
    let before = quota.throttled_s();
    stage.record(&server);
    let lost_s = quota.throttled_s() - before;
    let latencies = load.end();
    drop(server);
    Truth { text: format!("cpu.stat: throttled for {lost_s:.2} s; {latencies}"), lost_s }
}
