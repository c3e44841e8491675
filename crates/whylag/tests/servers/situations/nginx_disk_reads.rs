//! Files that are not in the page cache.

use crate::load::{Load, Request};
use crate::peers::{DiskSleeps, evicted, files, read_from_disk};
use crate::servers::nginx;
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "nginx_disk_reads",
    software: "nginx",
    version: &["nginx", "-v"],
    needs: &[],
    what: "4 clients fetch files of 1 MB, which somebody else puts out of the page cache all the time",
    accepted: &[
        ("disk-read", "asleep for the disk, in sendfile"),
        ("page-cache-evicted", "the files were in memory before"),
        ("event-loop-blocked", "the read is in the thread that reads all sockets"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let files = files(stage, "files", 200);
    let _evicted = evicted(files);
    let log = stage.path("access");
    let (server, port) = nginx(stage, 1, "sendfile on;", &format!("access_log {log} times;"));
    let request = Request::get(port, "/files/{n}").round(200);
    let load = Load::start(4, Duration::from_millis(5), &request);
    stage.warm_up();
    let sleeps = DiskSleeps::watch(server.pid());
    let before = read_from_disk(server.pid());
    stage.record(&server);
    let lost_s = sleeps.part() * WATCHED.as_secs_f64();
    let read = read_from_disk(server.pid()).saturating_sub(before) >> 20;
    let text = format!(
        "/proc/PID/io of the worker: {read} MB from the disk; found in state D in {:.0} % of the samples; {}",
        sleeps.part() * 100.0,
        load.end()
    );
    Truth { text, lost_s }
}
