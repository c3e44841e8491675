//! What remains when a recorder is killed, its disk is full, or it has no privilege.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::clocks::Outside;
use common::{Helper, Lab, copy_program, wait_for, wait_until, whylag};
use model::{Account, Blocked, Run, RunStatus};
use rustix::process::Signal;

fn silent(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

#[test]
fn a_killed_recorder_leaves_all_but_its_last_second() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut target = Helper::spawn(Command::new("sleep").arg("60"));
    let outside = Outside::of([target.0.id()]);
    let mut recorder = Helper::spawn(silent(lab.verb("record").args(["-p", &target.pid()])));
    wait_until("three seconds stored", || {
        lab.runs_so_far().first().is_some_and(|run| run.length_ns > 3_000_000_000)
    });
    recorder.signal(Signal::KILL);
    recorder.0.wait().unwrap();
    let run = lab.run();
    assert_eq!(run.status, RunStatus::Interrupted);
    assert_eq!(lab.runs()[0].status, RunStatus::Interrupted);
    outside.agrees(&run, Duration::from_millis(2500));
    let thread = &run.threads[0];
    // The thread has slept all the time, and so has never been written again.
    let asleep = thread.accounts.get(Account::Blocked(Blocked::TimerSleep));
    assert!(asleep > 2_500_000_000, "{asleep} ns of a sleep that was recorded for 3 s");
    assert!(target.0.try_wait().unwrap().is_none(), "the target was killed, too");
}

#[test]
fn the_command_of_a_killed_recorder_goes_on() {
    let Some(lab) = Lab::beside_others() else { return };
    let mark = lab.folder.path().join("mark");
    let script = format!("sleep 1; echo done > {}", mark.display());
    let mut recording = lab.recording(&[], ["sh", "-c", &script]);
    let mut recorder = Helper::spawn(silent(&mut recording));
    wait_until("the run to begin", || !lab.runs_so_far().is_empty());
    recorder.signal(Signal::KILL);
    recorder.0.wait().unwrap();
    wait_until("the command to end by itself", || mark.exists());
}

#[test]
fn two_recorders_share_a_store() {
    let Some(lab) = Lab::new() else { return };
    let script = "i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done";
    let mut both: Vec<Helper> = (0..2)
        .map(|_| Helper::spawn(silent(&mut lab.recording(&["--follow"], ["sh", "-c", script]))))
        .collect();
    for recorder in &mut both {
        assert!(wait_for(&mut recorder.0, Duration::from_secs(30)).success());
    }
    let runs = lab.runs();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(run.status, RunStatus::Complete);
        assert_eq!(run.threads, 21, "the shell and its 20 children");
    }
}

#[test]
fn a_full_disk_keeps_what_was_stored() {
    let Some(lab) = Lab::beside_others() else { return };
    let disk = lab.folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=40m,mode=700", "none"])
        .arg(&disk)
        .status()
        .unwrap();
    if !mounted.success() {
        println!("skipped: mount is not permitted");
        return;
    }
    let _unmount = Unmount(&disk);
    let store = disk.join("whylag.db");
    let mut record = whylag();
    record.arg("--store").arg(&store).args(["record", "--threshold", "5us", "--time", "12s"]);
    // Two programs that make each other wait all the time.
    let mut writer = Helper::spawn(Command::new("yes").stdout(Stdio::piped()));
    let pipe = writer.0.stdout.take().unwrap();
    let _reader = Helper::spawn(silent(Command::new("cat").stdin(pipe)));
    // The run goes to a file there, which attack/spool.rs looks into.
    record.env("TMPDIR", lab.folder.path());
    let output = record.args(["-p", &writer.pid()]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("no space left") && errors.contains("whylag import"), "{errors}");
    let mut export = whylag();
    export.arg("--store").arg(&store).args(["export", "--format", "json"]);
    let run: Run = serde_json::from_slice(&export.output().unwrap().stdout).unwrap();
    assert_eq!(run.status, RunStatus::Interrupted);
    assert!(run.outlier_count > 0 && !run.threads.is_empty());
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_read_only_store_can_be_read_but_not_recorded_to() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&[], ["true"]));
    let disk = lab.folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    fs::copy(lab.store(), disk.join("whylag.db")).unwrap();
    let bind = Command::new("mount").arg("--bind").args([&disk, &disk]).status().unwrap();
    if !bind.success() {
        println!("skipped: mount is not permitted");
        return;
    }
    let _unmount = Unmount(&disk);
    let remount = Command::new("mount").args(["-o", "remount,ro,bind"]).arg(&disk).status();
    assert!(remount.unwrap().success());
    let with = |verb: &[&str]| {
        let mut command = whylag();
        command.arg("--store").arg(disk.join("whylag.db")).args(verb);
        command.output().unwrap()
    };
    assert!(with(&["explain"]).status.success());
    let refused = with(&["record", "--", "true"]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.lines().count() == 1 && errors.contains("cannot be written"), "{errors}");
}

/// A run of `sleep 0.5` that was sampled, not recorded, and says why.
#[track_caller]
fn assert_sampled(lab: &Lab, because: &str, took: Duration) {
    let run = lab.run();
    assert!(run.header.sampled);
    assert!(run.capabilities.iter().all(|part| !part.on && part.because.contains(because)));
    let thread = run.threads.iter().max_by_key(|thread| thread.wall_ns()).unwrap();
    let life = Duration::from_nanos(thread.accounts.total());
    assert!((Duration::from_millis(400)..took).contains(&life), "{life:?} of {took:?}");
    // Where others take the CPUs it may have waited longer for one.
    let asleep = thread.accounts.get(Account::Blocked(Blocked::TimerSleep));
    let blocked = thread.accounts.sum_of(|account| matches!(account, Account::Blocked(_)));
    assert!(asleep > 0 && asleep * 2 > blocked, "{:?}", thread.accounts);
}

#[test]
fn without_privilege_thread_states_are_sampled() {
    let lab = Lab::anywhere_beside_others();
    fs::set_permissions(lab.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // Where nobody can run it: the folder of the build may be root's own.
    let binary = lab.folder.path().join("whylag");
    copy_program(env!("CARGO_BIN_EXE_whylag"), &binary);
    let began = Instant::now();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args(["--inh-caps=-all", "--bounding-set=-all"])
        .arg(&binary)
        .arg("--store")
        .arg(lab.store())
        .args(["record", "--", "sleep", "0.5"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("CAP_BPF"), "{output:?}");
    // root does not read what others may still exchange.
    fs::set_permissions(lab.folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(lab.store(), Some(0), Some(0)).unwrap();
    assert_sampled(&lab, "CAP_BPF", began.elapsed());
}

#[test]
fn without_btf_thread_states_are_sampled() {
    let lab = Lab::anywhere_beside_others();
    let script = r#"mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@""#;
    let began = Instant::now();
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_whylag"), "--store"])
        .arg(lab.store())
        .args(["record", "--", "sleep", "0.5"])
        .output()
        .unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("mount: ") {
        println!("skipped: mount is not permitted");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    assert_sampled(&lab, "BTF", began.elapsed());
}
