//! A server that reads files which are not in the page cache.

use crate::peers::{DiskSleeps, evicted, files};
use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};
use std::process::Stdio;

pub static SITUATION: Situation = Situation {
    name: "rsync_disk_reads",
    software: "rsync",
    version: &["rsync", "--version"],
    needs: &[],
    what: "rsync --checksum of a module of 200 MB, which somebody else puts out of the page cache all the time",
    accepted: &[
        ("disk-read", "asleep for the disk in read()"),
        ("page-cache-evicted", "the files were in memory before"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let _evicted = evicted(files(stage, "files", 200));
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    let text = format!(
        "use chroot = no\nport = {port}\naddress = 127.0.0.1\n[files]\npath = {folder}/files\nread only = yes\n"
    );
    let configuration = format!("--config={}", stage.file("rsyncd.conf", &text));
    let server = stage.server(&["rsync", "--daemon", "--no-detach", &configuration], port);
    let module = format!("rsync://127.0.0.1:{port}/files/");
    let words =
        format!("while rsync -rn --checksum --whole-file {module} {folder}/none/; do :; done");
    let _client = stage.start(command(&["sh", "-c", &words]).stdin(Stdio::null()));
    stage.warm_up();
    let sleeps = DiskSleeps::watch(server.pid());
    stage.record(&server);
    let lost_s = sleeps.part() * WATCHED.as_secs_f64();
    let text = format!(
        "found in state D in {:.0} % of the samples of the daemon and its child",
        sleeps.part() * 100.0
    );
    Truth { text, lost_s }
}
