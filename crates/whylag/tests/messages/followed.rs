//! Programs that are followed while they run, without a recording.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::programs::program;
use crate::common::{Lab, whylag};
use crate::{path, started, trace_in, traced, traces};

#[test]
fn a_running_program_is_followed_until_it_ends() {
    let lab = Lab::anywhere();
    let traces = traces();
    let mut child = started(&mut traced(&lab, &traces, 1200, None));
    trace_in(&traces);
    let output = whylag()
        .args(["trace", "-p", &child.id().to_string(), "--every", "200ms", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    child.wait().unwrap();
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let end = of("end");
    assert_eq!(end.len(), 1);
    assert_eq!(end[0]["program"]["state"], "closed");
    let counted: u64 = of("interval")
        .iter()
        .filter_map(|line| line["flows"][0]["metrics"]["total"]["n"].as_u64())
        .sum();
    assert!(of("interval").len() >= 4, "{}", of("interval").len());
    assert_eq!(end[0]["program"]["flows"][0]["ended"], counted);
    assert!(counted > 600, "{counted}");
    let slow = of("slow");
    // On a busy machine there are more, of which the slowest are kept: 200 at once.
    let (told, all) = (slow.len() as u64, end[0]["program"]["flows"][0]["slow"].as_u64().unwrap());
    assert!(told == all || (200..all).contains(&told), "{told} of {all}");
    assert!(slow.iter().any(|line| line["message"]["id"].as_u64().unwrap() % 50 == 49));
}

#[test]
fn a_program_in_another_pid_and_mount_namespace_is_found() {
    let lab = Lab::anywhere();
    let folder = path(&lab.folder);
    let inside = format!(
        "mount -t tmpfs none /dev/shm && exec {} 1500 {folder}",
        program("traced").display()
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    let mut child = unshare.arg(inside).stdout(Stdio::null()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    let output = loop {
        let pids = fs::read_to_string(&children).unwrap_or_default();
        if let Some(pid) = pids.split_whitespace().next() {
            let output = whylag().args(["trace", "-p", pid, "--json"]).output().unwrap();
            if output.status.success() {
                break output;
            }
        }
        if child.try_wait().unwrap().is_some_and(|status| !status.success()) {
            println!("skipped: this user may make no namespaces");
            return;
        }
        assert!(Instant::now() < deadline, "not found");
        std::thread::sleep(Duration::from_millis(10));
    };
    child.wait().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(end["program"]["path"].as_str().unwrap().starts_with("/proc/"), "{end}");
    assert!(end["program"]["flows"][0]["ended"].as_u64().unwrap() > 500, "{end}");
    // Threads have the numbers of this namespace: inside they begin at 1.
    let slow: Value = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["kind"] == "slow")
        .unwrap();
    let tid = slow["message"]["tid"].as_u64().unwrap();
    assert!(tid > end["program"]["tgid"].as_u64().unwrap(), "{slow}");
}
