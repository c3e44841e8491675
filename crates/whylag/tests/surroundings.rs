//! A recorded command finds the surroundings that it would find alone: what a process inherits is
//! what whylag was given, not what whylag made of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use common::Lab;

/// What the same script prints alone and while it is recorded; both start in the same folder, with
/// Ctrl-C ignored as by nohup, and with a hangup not ignored, wherever the tests run.
fn both(lab: &Lab, script: &str) -> (String, String) {
    let text = |output: Output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let mut alone = Command::new("sh");
    alone.args(["-c", script]).current_dir(lab.folder.path()).stdin(Stdio::null());
    let mut recorded = lab.recording(&[], ["sh", "-c", script]);
    recorded.current_dir(lab.folder.path());
    for command in [&mut alone, &mut recorded] {
        // SAFETY: between fork and exec; two system calls.
        unsafe {
            command.pre_exec(|| {
                let set = [(libc::SIGINT, libc::SIG_IGN), (libc::SIGHUP, libc::SIG_DFL)];
                match set.map(|(signal, to)| libc::signal(signal, to)).contains(&libc::SIG_ERR) {
                    true => Err(std::io::Error::last_os_error()),
                    false => Ok(()),
                }
            });
        }
    }
    (text(alone.output().unwrap()), text(recorded.output().unwrap()))
}

#[track_caller]
fn assert_same(script: &str) {
    let Some(lab) = Lab::beside_others() else { return };
    let (alone, recorded) = both(&lab, script);
    assert!(!alone.is_empty());
    assert_eq!(recorded, alone, "recorded (left) and alone (right): {script}");
}

#[test]
fn signals_and_their_mask() {
    // The signals from 32 on are the C library's own: what becomes of them depends on how the
    // process was started.
    let numbers = r"s/\([0-9a-f]*\)\([0-9a-f]\{8\}\)$/\2/";
    assert_same(&format!("sed -n 's/^Sig[BIC]/&/;t x;d;:x;{numbers};p' /proc/self/status"));
}

#[test]
fn privileges() {
    assert_same("grep -E '^(Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)' /proc/self/status");
}

#[test]
fn limits() {
    assert_same("cat /proc/self/limits");
}

#[test]
fn open_files() {
    // The folder that ls itself has open is among them, each time.
    assert_same("ls /proc/self/fd");
}

#[test]
fn scheduling() {
    let fields = "/proc/self/status /proc/self/timerslack_ns /proc/self/oom_score_adj";
    assert_same(&format!("grep -hE '^(Cpus_allowed|Mems_allowed|[-0-9]+$)' {fields}; nice"));
}

#[test]
fn folder_mask_and_environment() {
    // `_` is the program that the shell was started by.
    assert_same("pwd; umask; env | grep -v '^_=' | sort");
}

#[test]
fn session_and_process_group() {
    // whylag's own: Ctrl-C in a terminal reaches the command, and job control stays as it was.
    let script = "cut -d' ' -f5,6 /proc/self/stat";
    assert_same(script);
}
