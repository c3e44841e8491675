//! A store that syncs each change.

use crate::load::{Load, Request};
use crate::process::words;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "etcd_fsync",
    software: "etcd",
    version: &["etcd", "--version"],
    needs: &[],
    what: "4 clients put keys, and think for 3 ms",
    accepted: &[
        ("fsync-journal", "the sync waits for the file system's journal"),
        ("disk-sync", "asleep in fsync or fdatasync for the disk"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (port, peers) = (stage.port(), stage.port());
    let line = format!(
        "etcd --data-dir data --listen-client-urls http://127.0.0.1:{port} \
         --advertise-client-urls http://127.0.0.1:{port} --listen-peer-urls http://127.0.0.1:{peers} \
         --initial-advertise-peer-urls http://127.0.0.1:{peers} \
         --initial-cluster default=http://127.0.0.1:{peers}"
    );
    let server = stage.server(&words(&line), port);
    let healthy = || Request::get_once(port, "/health").ask().contains("true");
    crate::common::wait_until("etcd", healthy);
    let body = r#"{"key": "Zm9v", "value": "YmFy"}"#;
    let text = format!(
        "POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let load =
        Load::start(4, Duration::from_millis(3), &Request { text, ..Request::get(port, "/") });
    stage.warm_up();
    let before = synced(port);
    stage.record(&server);
    let after = synced(port);
    let lost_s = after.0 - before.0;
    let text = format!(
        "etcd_disk_wal_fsync_duration_seconds: {} syncs, {lost_s:.2} s; {}",
        after.1 - before.1,
        load.end()
    );
    Truth { text, lost_s }
}

/// Seconds in syncs, and how many, by etcd's metrics.
fn synced(port: u16) -> (f64, f64) {
    let metrics = Request::get_once(port, "/metrics").ask();
    let value = |key: &str| -> f64 {
        let key = format!("etcd_disk_wal_fsync_duration_seconds_{key} ");
        let value = metrics.lines().find_map(|line| line.trim().strip_prefix(&key));
        value.unwrap().parse().unwrap()
    };
    (value("sum"), value("count"))
}
