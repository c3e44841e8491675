//! `whylag doctor --watch`: calls as they become bound.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use common::lazy::{CALLS, call_one_more, lazy, lazy_command, ready};
use common::nobody::{as_nobody, for_anybody};
use common::{Helper, Lab, wait_for, whylag};
use serde_json::Value;

#[test]
fn each_call_is_told_as_it_becomes_bound() {
    let folder = tempfile::tempdir().unwrap();
    let mut helper = lazy(folder.path(), 1);
    let mut command = whylag();
    command.args(["doctor", "-p", &helper.pid(), "--watch", "--json"]);
    let mut watching = Helper::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut notes = BufReader::new(watching.0.stderr.take().unwrap()).lines();
    let first = notes.next().unwrap().unwrap();
    assert!(first.contains("are not bound yet; looking every 10 ms"), "{first}");
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    let mut last = 0;
    for expected in &CALLS[1..] {
        call_one_more(&mut helper);
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["symbol"], **expected);
        assert!(line["library"].as_str().unwrap().ends_with("/lazy"), "{line}");
        assert!(line["provider"].as_str().unwrap().contains("libc.so"), "{line}");
        let at = line["unix_ns"].as_u64().unwrap();
        assert!(at > last);
        last = at;
    }
    drop(helper);
    let status = wait_for(&mut watching.0, std::time::Duration::from_secs(10));
    assert!(status.success());
    let rest: Vec<String> = notes.map(Result::unwrap).collect();
    let [.., end, unbound] = &rest[..] else { panic!("{rest:?}") };
    assert!(end.contains("exited or executed another program"), "{end}");
    assert!(unbound.ends_with(" calls are still not bound"), "{unbound}");
    assert!(lines.next().is_none());
}

/// Of every second call the linker's pages are not there; the recorder sees its length, and that it
/// lies within the times that the program tells.
#[test]
fn the_length_of_a_first_call_is_told_where_it_can_be_seen() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.folder.path().join("first_calls");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/first_calls.c");
    let mut cc = Command::new("cc");
    let cc = cc.args(["-O1", "-Wl,-z,lazy", "-o"]).arg(&program).arg(source);
    assert!(cc.status().unwrap().success());
    let mut command = Command::new(program);
    command.env_remove("LD_BIND_NOW").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut helper = Helper::spawn(&mut command);
    let mut told = BufReader::new(helper.0.stdout.take().unwrap()).lines();
    assert_eq!(told.next().unwrap().unwrap(), "ready");

    let mut command = whylag();
    command.args(["doctor", "-p", &helper.pid(), "--watch", "--json"]);
    let mut watching = Helper::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut notes = BufReader::new(watching.0.stderr.take().unwrap()).lines();
    assert!(notes.next().unwrap().unwrap().contains("are not bound yet"));
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    for (n, symbol) in CALLS.iter().enumerate() {
        helper.0.stdin.as_mut().unwrap().write_all(b".").unwrap();
        let times = told.next().unwrap().unwrap();
        let read_ns = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
        let (before, _) = times.split_once(' ').unwrap();
        let before: i64 = before.parse().unwrap();
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["symbol"], **symbol);
        let number = |value: &Value| value.as_i64().unwrap();
        assert!(number(&line["after_unix_ns"]) < number(&line["unix_ns"]), "{line}");
        assert!(before < number(&line["unix_ns"]), "{line} {times}");
        let seen = &line["resolution"];
        if n % 2 == 0 {
            assert!(seen.is_null() || number(&seen["major_faults"]) == 0, "{line}");
            continue;
        }
        assert!(number(&seen["minor_faults"]) > 0, "{line}");
        // Of a clock read in two processes.
        const SLACK: i64 = 1_000_000;
        let (began, ns) = (number(&seen["began_unix_ns"]), number(&seen["at_most_ns"]));
        assert!(before < began + SLACK && began + ns < read_ns + SLACK, "{line} {times}");
    }
    helper.0.stdin.take();
    assert!(wait_for(&mut watching.0, std::time::Duration::from_secs(10)).success());
    let last = notes.map(Result::unwrap).last().unwrap();
    assert!(last.ends_with(" calls are still not bound"), "{last}");
}

/// Without privilege only the looks are left: between which two, and why no more is known.
#[test]
fn without_privilege_a_call_is_told_without_its_length() {
    let (folder, binary) = for_anybody();
    let Ok(child) = as_nobody(lazy_command(folder.path(), 5)).spawn() else {
        println!("skipped: cannot become another user");
        return;
    };
    let mut helper = Helper(child);
    ready(&mut helper);
    let mut command = Command::new(binary);
    command.args(["doctor", "--watch", "--json", "-p", &helper.pid()]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watching = Helper::spawn(&mut as_nobody(command));
    let mut notes = BufReader::new(watching.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(notes.next().unwrap().contains("are not bound yet"));
    assert!(notes.next().unwrap().contains("cannot be seen here: no privilege for eBPF"));
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    call_one_more(&mut helper);
    let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(line["symbol"], "sched_yield");
    assert!(line["after_unix_ns"].as_i64() < line["unix_ns"].as_i64(), "{line}");
    assert!(line["resolution"].is_null(), "{line}");
    let because = line["resolution_unknown_because"].as_str().unwrap();
    assert!(because.contains("no privilege for eBPF"), "{line}");
    drop(helper);
    assert!(wait_for(&mut watching.0, std::time::Duration::from_secs(10)).success());
}
