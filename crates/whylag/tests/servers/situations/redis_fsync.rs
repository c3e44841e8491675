//! An append-only file that is synced at each write.

use crate::load::{Load, Request};
use crate::servers::{redis, redis_cli};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use crate::stage::WATCHED;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "redis_fsync",
    software: "Redis",
    version: &["redis-server", "--version"],
    needs: &["redis-cli"],
    what: "4 clients SET with appendfsync always",
    accepted: &[
        ("fsync-journal", "the sync waits for the file system's journal"),
        ("disk-sync", "asleep in fsync or fdatasync for the disk"),
        ("event-loop-blocked", "the sync is in the thread that reads all sockets"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let options =
        ["--appendonly", "yes", "--appendfsync", "always", "--latency-monitor-threshold", "1"];
    let (redis, port) = redis(stage, &options);
    let load = Load::start(
        4,
        Duration::ZERO,
        &Request::line(port, "SET key:{n} value", "+OK\r\n").round(1000),
    );
    stage.warm_up();
    redis_cli(stage, port, &["LATENCY", "RESET"]);
    stage.record(&redis);
    // Those of a millisecond or more, one for each second: only proof that it is the sync.
    let slow =
        redis_cli(stage, port, &["LATENCY", "HISTORY", "aof-fsync-always"]).lines().count() / 2;
    let busy = load.end();
    redis_cli(stage, port, &["CONFIG", "SET", "appendfsync", "no"]);
    let load = Load::start(
        4,
        Duration::ZERO,
        &Request::line(port, "SET key:{n} value", "+OK\r\n").round(1000),
    );
    stage.warm_up();
    let without = load.end();
    let more = busy.quantile(0.5).saturating_sub(without.quantile(0.5)).as_secs_f64();
    let lost_s = WATCHED.as_secs_f64() * more / busy.quantile(0.5).as_secs_f64();
    let text = format!(
        "p50 of SET is {:.2} ms, and {:.2} ms after CONFIG SET appendfsync no; LATENCY HISTORY has {slow} s with syncs of a millisecond",
        busy.quantile(0.5).as_secs_f64() * 1e3,
        without.quantile(0.5).as_secs_f64() * 1e3,
    );
    Truth { text, lost_s }
}
