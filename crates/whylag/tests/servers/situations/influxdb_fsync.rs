//! A write-ahead log that is synced at each write.

use crate::load::{Latencies, Load, Request};
use crate::process::{Process, command};
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};
use std::process::Stdio;
use std::time::Duration;

use crate::common::wait_until;

pub static SITUATION: Situation = Situation {
    name: "influxdb_fsync",
    software: "InfluxDB",
    version: &["influxd", "version"],
    needs: &[],
    what: "4 clients write a point each; the write-ahead log is synced at each write (wal-fsync-delay 0)",
    accepted: &[
        ("fsync-journal", "the sync waits for the file system's journal"),
        ("disk-sync", "asleep in fsync or fdatasync for the disk"),
        ("turn-taking", "one sync at a time, the other writes wait for it"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let on_disk = stage.path("wal");
    let (server, load) = written(stage, &on_disk);
    stage.warm_up();
    stage.record(&server);
    let synced = load.end();
    drop(server);
    // A file system in memory has nothing to sync.
    let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
    std::os::unix::fs::chown(in_memory.path(), Some(65_534), Some(65_534)).unwrap();
    let (_server, load) = written(stage, in_memory.path().to_str().unwrap());
    stage.warm_up();
    let unsynced = load.end();
    let [with, without] = [&synced, &unsynced].map(p50_s);
    let lost_s = 4.0 * WATCHED.as_secs_f64() * (with - without).max(0.0) / with;
    let text = format!(
        "p50 of a write is {:.2} ms, and {:.2} ms of the same server with its log in memory; {synced}",
        with * 1e3,
        without * 1e3,
    );
    Truth { text, lost_s }
}

/// A server with its log there, and its load.
fn written(stage: &Stage, wal: &str) -> (Process, Load) {
    let port = stage.port();
    let other = stage.port();
    let settings = [
        ("DATA_WAL_DIR", wal.to_owned()),
        ("DATA_DIR", stage.path(&format!("data-{port}"))),
        ("META_DIR", stage.path(&format!("meta-{port}"))),
        ("HTTP_BIND_ADDRESS", format!("127.0.0.1:{port}")),
        ("BIND_ADDRESS", format!("127.0.0.1:{other}")),
        ("REPORTING_DISABLED", "true".to_owned()),
        ("MONITOR_STORE_ENABLED", "false".to_owned()),
        ("HTTP_LOG_ENABLED", "false".to_owned()),
        ("DATA_QUERY_LOG_ENABLED", "false".to_owned()),
    ];
    let configuration = stage.file("influxdb.conf", "");
    let mut words = command(&["influxd", "run", "-config", &configuration]);
    for (name, value) in settings {
        let section = name.split_once('_').unwrap();
        let (section, rest) = match name {
            "BIND_ADDRESS" | "REPORTING_DISABLED" => ("", name),
            _ => section,
        };
        let name = [section, rest].into_iter().filter(|part| !part.is_empty());
        words.env(format!("INFLUXDB_{}", name.collect::<Vec<_>>().join("_")), value);
    }
    let server = stage.start(words.stdin(Stdio::null()));
    wait_until("InfluxDB", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let create = post(port, "/query?q=CREATE%20DATABASE%20bench", "");
    let write = post(port, "/write?db=bench", "measured,from=here value=1");
    // Just after its start it says 200 OK and has none.
    wait_until("its database", || create.ask().contains("200 OK") && write.ask().contains(" 204 "));
    (server, Load::start(4, Duration::from_millis(2), &write))
}

fn post(port: u16, path: &str, body: &str) -> Request {
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Request { text, ..Request::get(port, path) }
}

fn p50_s(latencies: &Latencies) -> f64 {
    latencies.quantile(0.5).as_secs_f64()
}
