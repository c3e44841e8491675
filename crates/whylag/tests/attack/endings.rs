//! Signals, outputs that cannot be written, and that a run is what was recorded.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use model::{Run, RunStatus};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::programs::program;
use crate::common::values::Values;
use crate::common::{Helper, Lab, wait_for, wait_until};

const MS: u64 = 1_000_000;

/// A program that does something every 5 ms and ends in its own way when it is asked to.
const POLITE: &str =
    "trap 'exit 7' TERM HUP INT; i=0; while [ $i -lt 4000 ]; do sleep 0.005; i=$((i+1)); done";

/// Waits until so much was stored.
fn wait_for_ms(lab: &Lab, ms: u64) {
    wait_until("some of the run stored", || {
        lab.runs_so_far().first().is_some_and(|run| run.length_ns > ms * MS)
    });
}

/// Every thread that was there at the end was recorded up to the end, and none for longer than the
/// run. What a program was about to charge when recording stopped may be a little later.
#[track_caller]
fn assert_of_the_same_interval(run: &Run) {
    let end = run.end.as_ref().expect("an end").ended_ns;
    for thread in &run.threads {
        assert!(thread.first_ns >= run.header.started_ns, "{thread:?}");
        assert!(thread.last_ns <= end + MS, "{} after the end: {thread:?}", thread.last_ns - end);
        assert!(thread.wall_ns() <= run.length_ns() + MS, "{thread:?}");
        assert!(!thread.alive || thread.last_ns + MS >= end, "cut short: {thread:?}");
    }
}

/// The command that a recorder has started, with any of its threads.
fn child_of(recorder: &Helper) -> Option<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", recorder.pid())).ok()?;
    let children =
        threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    children.flatten().find_map(|children| Pid::from_raw(children.trim().parse().ok()?))
}

#[test]
fn a_signal_reaches_the_command_when_all_is_read() {
    let Some(lab) = Lab::new() else { return };
    let signals = [(Signal::TERM, "SIGTERM"), (Signal::HUP, "SIGHUP"), (Signal::INT, "SIGINT")];
    for (signal, name) in signals {
        let mut recording = lab.recording(&[], ["sh", "-c", POLITE]);
        let mut recorder = Helper::spawn(recording.stderr(Stdio::null()));
        let before = lab.runs_so_far().len();
        wait_until("the run to begin", || lab.runs_so_far().len() > before.min(1));
        // In the middle between two batches.
        std::thread::sleep(Duration::from_millis(1_500));
        recorder.signal(signal);
        if signal == Signal::INT {
            // Ctrl-C reaches the command from the terminal, so whylag does not pass it on: the
            // command goes on, and whylag waits for its end.
            std::thread::sleep(Duration::from_secs(5));
            child_of(&recorder).map(|child| kill_process(child, signal)).unwrap().unwrap();
        }
        let status = wait_for(&mut recorder.0, Duration::from_secs(20));
        assert_eq!(status.code(), Some(7), "the command ends in its own way, and so does whylag");
        let run = lab.run();
        assert_eq!(run.status, RunStatus::Complete);
        assert!(run.end.as_ref().unwrap().reason.contains(name), "{:?}", run.end);
        assert_of_the_same_interval(&run);
        let shell = run.threads.iter().max_by_key(|thread| thread.wall_ns()).unwrap();
        assert!(shell.alive, "it was killed before its accounts were read: {shell:?}");
        fs::remove_file(lab.store()).unwrap();
    }
}

#[test]
fn a_command_that_is_ended_at_once_has_names_in_its_stacks() {
    let Some(lab) = Lab::beside_others() else { return };
    let crowd = program("crowd");
    let command = [crowd.to_str().unwrap(), "2", "60000", "1000"];
    let record = || {
        let mut recording = lab.recording(&["--threshold", "1ms"], command);
        recording.stdout(Stdio::null()).stderr(Stdio::null());
        let runs = lab.runs_so_far().len();
        let mut recorder = Helper::spawn(&mut recording);
        wait_until("the run to begin", || lab.runs_so_far().len() > runs);
        std::thread::sleep(Duration::from_millis(400));
        recorder.signal(Signal::TERM);
        let status = wait_for(&mut recorder.0, Duration::from_secs(20));
        assert_eq!(status.code(), Some(128 + libc::SIGTERM));
        let run = lab.run();
        println!("recorded for {} ns", run.length_ns());
        run
    };
    // Before anything but the end has asked what is mapped in it: a busy machine takes its time.
    let mut runs = std::iter::repeat_with(record).take(3);
    let run = runs.find(|run| run.length_ns() < 1_500 * MS).expect("each was a second and a half");
    let users = run.stacks.values().filter(|stack| stack.space == model::Space::User);
    let symbols: Vec<_> = users.flat_map(|stack| &stack.frames).map(|f| &f.symbol).collect();
    assert!(symbols.contains(&&Some("clock_nanosleep".to_owned())), "{symbols:?}");
}

#[test]
fn nohup_keeps_a_recording_from_a_hangup() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut recording = lab.recording(&[], ["sh", "-c", "sleep 1.5"]);
    // SAFETY: between fork and exec; one system call.
    unsafe {
        recording.pre_exec(|| match libc::signal(libc::SIGHUP, libc::SIG_IGN) {
            libc::SIG_ERR => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let mut recorder = Helper::spawn(recording.stderr(Stdio::null()));
    wait_until("the run to begin", || !lab.runs_so_far().is_empty());
    recorder.signal(Signal::HUP);
    assert!(wait_for(&mut recorder.0, Duration::from_secs(10)).success());
    assert_eq!(lab.run().end.unwrap().reason, "the command ended");
}

#[test]
fn more_signals_while_it_finishes_lose_nothing() {
    let Some(lab) = Lab::beside_others() else { return };
    let stubborn = "trap '' TERM HUP; i=0; while [ $i -lt 150 ]; do sleep 0.02; i=$((i+1)); done";
    let mut recording = lab.recording(&[], ["sh", "-c", stubborn]);
    let mut recorder = Helper::spawn(recording.stderr(Stdio::null()));
    wait_until("the run to begin", || !lab.runs_so_far().is_empty());
    for _ in 0..5 {
        for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
            recorder.signal(signal);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(wait_for(&mut recorder.0, Duration::from_secs(20)).success());
    let run = lab.run();
    assert_eq!(run.status, RunStatus::Complete);
    assert_of_the_same_interval(&run);
}

/// `whylag record` of a command that fails in its own way, with `stderr`.
#[track_caller]
fn assert_recorded_with(stderr: impl Into<Stdio>) {
    let Some(lab) = Lab::beside_others() else { return };
    let mut recording = lab.recording(&[], ["sh", "-c", "sleep 1.2; exit 5"]);
    let mut recorder = Helper::spawn(recording.stderr(stderr.into()));
    let status = wait_for(&mut recorder.0, Duration::from_secs(20));
    assert_eq!(status.code(), Some(5));
    let run = lab.run();
    assert_eq!(run.status, RunStatus::Complete);
    assert!(!run.threads.is_empty() && run.length_ns() > 1_000 * MS, "{}", run.length_ns());
}

#[test]
fn a_full_disk_below_standard_error_ends_nothing() {
    assert_recorded_with(File::options().write(true).open("/dev/full").unwrap());
}

#[test]
fn a_pipe_that_nobody_reads_any_more_ends_nothing() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_recorded_with(writer);
}

/// Opens a terminal: whoever holds the first, and the terminal itself. No other program inherits
/// them, or the terminal would not go away.
fn terminal() -> (OwnedFd, OwnedFd) {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: takes a number, gives a new descriptor or an error.
    let first = unsafe { libc::posix_openpt(flags) };
    assert!(first >= 0);
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::unlockpt(first) }, 0);
    // SAFETY: takes numbers, gives a new descriptor or an error.
    let second = unsafe { libc::ioctl(first, libc::TIOCGPTPEER, flags) };
    assert!(second >= 0);
    // SAFETY: two new descriptors that nobody else owns.
    unsafe { (OwnedFd::from_raw_fd(first), OwnedFd::from_raw_fd(second)) }
}

#[test]
fn a_terminal_that_goes_away_ends_the_recording_and_loses_nothing() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut target = Helper::spawn(Command::new("sleep").arg("60"));
    let (first, second) = terminal();
    let mut record = lab.verb("record");
    record.args(["-p", &target.pid()]).stderr(second);
    // SAFETY: between fork and exec; two system calls, which make the terminal its own.
    unsafe {
        record.pre_exec(|| {
            let own = libc::setsid() >= 0 && libc::ioctl(2, libc::TIOCSCTTY, 0) == 0;
            if own { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    let mut recorder = Helper::spawn(&mut record);
    drop(record);
    wait_for_ms(&lab, 1_000);
    drop(first);
    assert!(wait_for(&mut recorder.0, Duration::from_secs(20)).success());
    let run = lab.run();
    assert_eq!(run.status, RunStatus::Complete);
    assert_eq!(run.end.as_ref().unwrap().reason, "SIGHUP");
    assert_of_the_same_interval(&run);
    assert!(target.0.try_wait().unwrap().is_none());
}

#[test]
fn without_any_standard_descriptor_it_records_and_the_store_is_whole() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut recording = lab.recording(&[], ["sleep", "0.3"]);
    // SAFETY: between fork and exec; closes what the new program is to find closed.
    unsafe {
        recording.pre_exec(|| {
            (0..3).for_each(|number| {
                libc::close(number);
            });
            Ok(())
        });
    }
    assert!(recording.status().unwrap().success());
    assert_eq!(lab.run().status, RunStatus::Complete);
    let mut begin = [0; 15];
    File::open(lab.store()).unwrap().read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"SQLite format 3", "nothing was printed into it");
}

#[test]
fn an_export_that_cannot_be_written_fails_in_one_line() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&[], ["true"]));
    for format in ["json", "csv", "run"] {
        let mut export = lab.verb("export");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = export.args(["--format", format]).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{format}: {errors}");
        assert!(errors.lines().count() == 1 && errors.contains("No space left"), "{errors}");
    }
    // And with nobody to tell.
    for format in ["json", "svg"] {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let mut export = lab.verb("export");
        export.args(["--format", format]).stdout(full()).stderr(full());
        assert_eq!(export.status().unwrap().code(), Some(1), "{format}");
    }
}

/// Standard error that is closed, and standard error that nobody reads.
fn without_standard_error(command: &mut Command, is_closed: bool) -> Output {
    if is_closed {
        // SAFETY: between fork and exec; one system call.
        unsafe {
            command.pre_exec(|| {
                libc::close(2);
                Ok(())
            });
        }
    } else {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stderr(writer);
    }
    command.stdout(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

/// What it has to say goes nowhere, least of all into a file that is open by then.
#[test]
fn export_and_harvest_do_their_work_with_nobody_to_tell() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&[], ["true"]));
    for is_closed in [true, false] {
        let file = lab.folder.path().join("run.json");
        let mut export = lab.verb("export");
        export.args(["--format", "json", "-o"]).arg(&file);
        let output = without_standard_error(&mut export, is_closed);
        assert!(output.status.success(), "{output:?}");
        let run: Run = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(run.status, RunStatus::Complete);

        let traces = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(traces.path(), Permissions::from_mode(0o700)).unwrap();
        let mut traced = Command::new(program("traced"));
        traced.args(["1000", lab.folder.path().to_str().unwrap(), "149"]);
        let killed = traced.env("WHYLAG_TRACE_DIR", traces.path()).output().unwrap();
        assert!(!killed.status.success());
        let mut left = fs::read_dir(traces.path()).unwrap();
        let left = left.next().unwrap().unwrap().path();
        let before = lab.runs().len();
        let mut harvest = lab.verb("trace");
        harvest.arg("harvest").arg(&left);
        let output = without_standard_error(&mut harvest, is_closed);
        assert!(output.status.success() && !left.exists(), "{output:?}");
        assert_eq!(lab.runs().len(), before + 1);
        assert_eq!(lab.run().messages.programs[0].flows[0].ended, 149);
    }
}

#[test]
fn accounts_and_run_are_of_the_same_interval() {
    let Some(lab) = Lab::new() else { return };
    let mut crowd = Command::new(program("crowd"));
    let mut crowd = Helper::spawn(crowd.args(["9", "30000"]).stdout(Stdio::piped()));
    let mut text = Vec::new();
    let mut out = crowd.0.stdout.take().unwrap();
    while !String::from_utf8_lossy(&text).contains("ready=") {
        let mut some = [0; 512];
        let count = out.read(&mut some).unwrap();
        assert_ne!(count, 0, "the crowd has ended");
        text.extend(&some[..count]);
    }
    assert!(Values::of(&String::from_utf8(text).unwrap()).get("main") > 0);
    for time in ["0s", "2s"] {
        let run = lab.record_target(&["-p", &crowd.pid(), "--time", time]).run;
        assert_eq!(run.threads.len(), 10);
        assert_of_the_same_interval(&run);
    }
    let run = lab.record(&[], ["sh", "-c", "sleep 0.2 & sleep 0.1; wait"]).run;
    assert_of_the_same_interval(&run);
}
