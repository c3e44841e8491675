//! A journal that is synced at each job.

use crate::load::{Latencies, Load};
use crate::servers::{beanstalkd, beanstalkd_put};
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "beanstalkd_fsync",
    software: "beanstalkd",
    version: &["beanstalkd", "-v"],
    needs: &[],
    what: "4 clients put jobs; the journal is synced at each (-f0)",
    accepted: &[
        ("fsync-journal", "the sync waits for the file system's journal"),
        ("disk-sync", "asleep in fsync or fdatasync for the disk"),
        ("event-loop-blocked", "the sync is in the thread that reads all sockets"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = beanstalkd(stage, &["-f0"]);
    let load = start(port);
    stage.warm_up();
    stage.record(&server);
    let synced = load.end();
    drop(server);
    // It goes on with the same journal.
    let (_server, port) = beanstalkd(stage, &["-F"]);
    let load = start(port);
    stage.warm_up();
    let [synced, unsynced] = [synced, load.end()].map(|all| p50_s(&all));
    let lost_s = WATCHED.as_secs_f64() * (synced - unsynced).max(0.0) / synced;
    let text = format!(
        "p50 of put is {:.2} ms, and {:.2} ms of the same server with -F (never sync)",
        synced * 1e3,
        unsynced * 1e3,
    );
    Truth { text, lost_s }
}

fn start(port: u16) -> Load {
    Load::start(4, Duration::ZERO, &beanstalkd_put(port))
}

fn p50_s(latencies: &Latencies) -> f64 {
    latencies.quantile(0.5).as_secs_f64()
}
