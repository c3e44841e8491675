//! Stores that fail while a run is recorded: what was recorded is reported, and is somewhere.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use model::{Run, RunStatus};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::programs::program;
use crate::common::{Helper, Lab, wait_until, whylag};

/// `whylag --store STORE VERB`.
fn verb(store: &Path, verb: &str) -> Command {
    let mut command = whylag();
    command.arg("--store").arg(store).arg(verb);
    command
}

fn run_of(store: &Path, name: &[&str]) -> Run {
    let output = verb(store, "export").args(name).args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The run file that was named, which only its owner may read.
#[track_caller]
fn file_named_in(errors: &str) -> PathBuf {
    let line = errors.lines().find_map(|line| line.strip_prefix("whylag: it is in "));
    let path = PathBuf::from(line.expect(errors).split(": ").next().unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    path
}

/// It was said that the store does not have the run, the report was printed, and the file that was
/// named has all of the run.
#[track_caller]
fn assert_whole_in_a_file(lab: &Lab, output: &Output, because: &str) -> Run {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("the store does not have this run") && errors.contains(because));
    assert!(errors.contains("of wall time went"), "no report: {errors}");
    assert!(!errors.contains("is stored"), "{errors}");
    let file = file_named_in(&errors);
    let other = lab.folder.path().join("other.db");
    let import = verb(&other, "import").arg(&file).output().unwrap();
    assert!(import.status.success(), "{import:?}");
    fs::remove_file(&file).unwrap();
    let run = run_of(&other, &[]);
    assert_eq!(run.status, RunStatus::Complete);
    assert!(run.length_ns() > 2_000_000_000 && !run.threads.is_empty());
    let all = run.outlier_count + run.seconds.len() as u64;
    assert!(all > 0);
    for thread in &run.threads {
        assert_eq!(thread.accounts.total(), thread.wall_ns());
    }
    run
}

/// A program that makes some 8,000 waits a second worth keeping, over a megabyte of the store, and
/// leaves the CPUs to the tests beside this one.
fn busy() -> Helper {
    Helper::spawn(Command::new(program("naps")).arg("4"))
}

/// A recording of a sleeping process, begun and with something stored.
fn begun(lab: &Lab, options: &[&str], pid: &str) -> Child {
    let mut record = lab.verb("record");
    record.args(options).args(["-p", pid]);
    let child = record.stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a second stored", || {
        lab.runs_so_far()
            .last()
            .is_some_and(|run| run.status == RunStatus::Recording && run.length_ns > 1_000_000_000)
    });
    child
}

/// What a recorder says that goes on storing for a while and is ended then: one that ends by itself may
/// have done so, on a busy machine, before its store is touched.
fn ended_later(recorder: Child) -> Output {
    std::thread::sleep(Duration::from_millis(1500));
    kill_process(Pid::from_child(&recorder), Signal::INT).unwrap();
    recorder.wait_with_output().unwrap()
}

#[test]
fn a_store_that_is_removed_meanwhile_is_noticed_and_nothing_is_lost() {
    let Some(lab) = Lab::beside_others() else { return };
    let busy = busy();
    let recorder = begun(&lab, &["--threshold", "10us"], &busy.pid());
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", lab.store().display())).unwrap();
    }
    let output = ended_later(recorder);
    drop(busy);
    let run = assert_whole_in_a_file(&lab, &output, "removed or replaced");
    assert!(run.outlier_count > 0);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("a part of it is lost"));
}

#[test]
fn a_log_that_is_cut_meanwhile_is_noticed() {
    let Some(lab) = Lab::beside_others() else { return };
    // Somebody who reads keeps what is recorded from being moved from the log into the file.
    drop(lab.record(&[], ["true"]));
    let reader = Connection::open(lab.store()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM runs").unwrap();
    let busy = busy();
    let recorder = begun(&lab, &["--threshold", "10us"], &busy.pid());
    let log = format!("{}-wal", lab.store().display());
    File::options().write(true).open(log).unwrap().set_len(0).unwrap();
    let output = ended_later(recorder);
    drop(busy);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("of wall time went"), "no report: {errors}");
    assert!(errors.contains("the store does not have this run"), "{errors}");
    fs::remove_file(file_named_in(&errors)).unwrap();
}

/// Records a busy program to a disk of 3 MB, which is mounted in a namespace of its own and goes with
/// it; `None` where that is not permitted.
fn recorded_on_a_small_disk(lab: &Lab, temporary: &Path) -> Option<Output> {
    let disk = lab.folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let busy = busy();
    let script = "mount -t tmpfs -o size=3m,mode=700 none \"$0\" && exec \"$@\"";
    let mut record = Command::new("unshare");
    record.args(["-m", "sh", "-c", script]).arg(&disk);
    record.arg(env!("CARGO_BIN_EXE_whylag")).arg("--store").arg(disk.join("whylag.db"));
    record.args(["record", "--threshold", "10us", "--time", "12s", "-p", &busy.pid()]);
    record.env_remove("WHYLAG_STORE").env("TMPDIR", temporary);
    let output = record.output().unwrap();
    drop(busy);
    if String::from_utf8_lossy(&output.stderr).contains("mount: ") {
        println!("skipped: mount is not permitted");
        return None;
    }
    Some(output)
}

#[test]
fn a_full_disk_ends_nothing_and_the_run_is_in_a_file_elsewhere() {
    let Some(lab) = Lab::beside_others() else { return };
    let Some(output) = recorded_on_a_small_disk(&lab, lab.folder.path()) else { return };
    let run = assert_whole_in_a_file(&lab, &output, "no space left");
    assert!(run.outlier_count > 0);
}

#[test]
fn where_all_disks_are_full_the_report_is_printed_from_memory() {
    let Some(lab) = Lab::beside_others() else { return };
    let disk = lab.folder.path().join("disk");
    let Some(output) = recorded_on_a_small_disk(&lab, &disk) else { return };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("no space left") && errors.contains("of wall time went"), "{errors}");
    assert!(errors.contains("what is printed is all there is"), "{errors}");
}

#[test]
fn a_limit_of_the_size_of_files_ends_nothing() {
    let Some(lab) = Lab::beside_others() else { return };
    let busy = busy();
    let script = "ulimit -f 4000; exec \"$0\" \"$@\"";
    let mut record = Command::new("sh");
    record.args(["-c", script, env!("CARGO_BIN_EXE_whylag"), "--store"]).arg(lab.store());
    record.args(["record", "--threshold", "10us", "--time", "12s", "-p", &busy.pid()]);
    record.env_remove("WHYLAG_STORE").env("TMPDIR", lab.folder.path());
    let output = record.output().unwrap();
    drop(busy);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{:?} {errors}", output.status);
    assert!(errors.contains("of wall time went"), "no report: {errors}");
    assert!(errors.contains("cannot be written any more"), "{errors}");
}

#[test]
fn the_signal_of_that_limit_is_the_commands_own() {
    let Some(lab) = Lab::beside_others() else { return };
    let script = "ulimit -f 1; head -c 100000 /dev/zero > \"$0\"; echo $?";
    let big = lab.folder.path().join("big");
    let recorded = lab.record(&[], ["sh", "-c", script, big.to_str().unwrap()]);
    assert_eq!(recorded.stdout(), format!("{}\n", 128 + libc::SIGXFSZ));
}

#[test]
fn a_writer_that_holds_the_store_for_long_is_waited_out() {
    let Some(lab) = Lab::beside_others() else { return };
    let busy = busy();
    let recorder = begun(&lab, &["--time", "15s"], &busy.pid());
    let other = Connection::open(lab.store()).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::sleep(Duration::from_millis(11_500));
    other.execute_batch("COMMIT").unwrap();
    let output = recorder.wait_with_output().unwrap();
    drop(busy);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("the store takes data again"), "{errors}");
    let run = lab.run();
    assert_eq!(run.status, RunStatus::Complete);
    assert!(run.length_ns() > 14_000_000_000, "{}", run.length_ns());
    assert!(run.losses.by_kind().keys().all(|kind| !kind.contains("store")), "{:?}", run.losses);
}

#[test]
fn a_store_that_is_never_given_back_costs_a_file_and_no_data() {
    let Some(lab) = Lab::beside_others() else { return };
    let busy = busy();
    let recorder = begun(&lab, &["--threshold", "10us"], &busy.pid());
    let other = Connection::open(lab.store()).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let output = ended_later(recorder);
    drop(busy);
    let run = assert_whole_in_a_file(&lab, &output, "another process has been writing");
    assert!(run.outlier_count > 0);
    other.execute_batch("COMMIT").unwrap();
}

#[test]
fn a_damaged_store_is_refused_also_when_a_reader_left_its_log() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&["--threshold", "10us"], ["sh", "-c", "for i in 1 2 3; do sleep 0.01; done"]));
    let mut bytes = fs::read(lab.store()).unwrap();
    // One page alone may be a free one.
    let quarter = bytes.len() / 4 / 4096 * 4096;
    bytes[quarter..2 * quarter].fill(0xa5);
    fs::write(lab.store(), &bytes).unwrap();
    // It may fail or not: it reads little.
    let _ = lab.verb("runs").output().unwrap();
    let log = PathBuf::from(format!("{}-wal", lab.store().display()));
    assert!(log.exists(), "the reader has left no log: nothing is tested");
    let output = lab.recording(&[], ["true"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("damaged") && errors.lines().count() == 1, "{errors}");
    assert!(fs::read(lab.store()).unwrap() == bytes, "it was changed");
}
