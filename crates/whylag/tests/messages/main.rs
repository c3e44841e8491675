//! Programs that trace their messages: what whylag says of a slow one against what the program
//! itself knows, and what it does with files that were left behind, or that lie.

#![allow(clippy::unwrap_used, reason = "this is the test")]

#[path = "../common/mod.rs"]
mod common;

mod files;
mod followed;
mod recorded;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::programs::program;
use common::{Lab, whylag};
use model::{Message, Run};
use serde_json::Value;
use tempfile::TempDir;

/// What the program printed of a slow message.
struct Truth {
    id: u64,
    kind: String,
    /// Receipt to just behind the end.
    total: u64,
    /// The slow part of the logic, by the same clock.
    part: u64,
    /// CPU time of that part.
    ran: u64,
}

fn truths(output: &[u8]) -> Vec<Truth> {
    let text = String::from_utf8_lossy(output);
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words[place].parse().unwrap();
        let kind = words[1].to_owned();
        Truth { id: number(0), kind, total: number(2), part: number(3), ran: number(4) }
    };
    text.lines().map(of_line).collect()
}

/// A folder for traces, in memory as they have to be.
fn traces() -> TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn path(folder: &TempDir) -> String {
    folder.path().to_str().unwrap().to_owned()
}

fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// `traced MESSAGES FOLDER [CRASH]`, its trace in `traces`.
fn traced(lab: &Lab, traces: &TempDir, messages: u32, crash: Option<u32>) -> Command {
    let mut command = Command::new(program("traced"));
    command.arg(messages.to_string()).arg(lab.folder.path());
    command.args(crash.map(|id| id.to_string())).env("WHYLAG_TRACE_DIR", traces.path());
    command
}

/// The trace of a program, once it is there and complete enough to be listed.
fn trace_in(folder: &TempDir) -> PathBuf {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        if let Some(path) = names.find(|path| path.extension().is_some_and(|e| e == "trace")) {
            return path;
        }
        assert!(Instant::now() < deadline, "no trace in {}", folder.path().display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn list(traces: &TempDir) -> Vec<Value> {
    let output = whylag()
        .args(["trace", "ls", "--json"])
        .env("WHYLAG_TRACE_DIR", traces.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let here = path(traces);
    all.into_iter().filter(|file| file["path"].as_str().unwrap().starts_with(&here)).collect()
}

/// The place among the slow ones, from 1, and the message.
fn slow_by_id(run: &Run) -> HashMap<u64, (usize, &Message)> {
    let slow = run.messages.slow.iter().enumerate();
    slow.map(|(place, message)| (message.id, (place + 1, message))).collect()
}
