//! What the tests of the binary share: a laboratory with a store of its own, alone on the machine or
//! beside others, and the programs that are recorded there.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub mod clocks;
pub mod disturbance;
pub mod family;
pub mod lazy;
pub mod made_up;
pub mod nobody;
pub mod programs;
pub mod values;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use model::{Run, RunSummary};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use tempfile::TempDir;

/// The binary under test, as the user would run it.
pub fn whylag() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whylag"));
    command.env_remove("WHYLAG_STORE").stdin(Stdio::null());
    // The tests themselves may run under nohup, or in the background of a script, where SIGINT is
    // ignored: and a shell cannot trap what was ignored when it began.
    // SAFETY: between fork and exec; signal() may be called there.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    command
}

/// A folder with a store, and a turn: alone on the machine, because two recordings at once would be
/// in each other's way, and in the way of what is recorded; or beside others that assert nothing
/// which those could change: no time, no sum of the host, no loss.
pub struct Lab {
    pub folder: TempDir,
    _turn: File,
}

impl Lab {
    /// Alone. `None`, and the reason printed, on a host where whylag cannot record with eBPF.
    pub fn new() -> Option<Lab> {
        Lab::anywhere().that_records()
    }

    /// Beside others; `None` as above.
    pub fn beside_others() -> Option<Lab> {
        Lab::anywhere_beside_others().that_records()
    }

    /// Alone, for tests that need no eBPF.
    pub fn anywhere() -> Lab {
        Lab::with_turn(FlockOperation::LockExclusive)
    }

    /// Beside others, for tests that need no eBPF.
    pub fn anywhere_beside_others() -> Lab {
        Lab::with_turn(FlockOperation::LockShared)
    }

    fn with_turn(turn: FlockOperation) -> Lab {
        let lock = File::create(std::env::temp_dir().join("whylag-tests.lock")).unwrap();
        flock(&lock, turn).unwrap();
        Lab { folder: tempfile::tempdir().unwrap(), _turn: lock }
    }

    fn that_records(self) -> Option<Lab> {
        static REASON: OnceLock<Option<String>> = OnceLock::new();
        let reason = REASON.get_or_init(|| {
            // scripts/test.sh has tried it once for all of them.
            if std::env::var_os("WHYLAG_RECORDS_HERE").is_some() {
                return None;
            }
            let run = self.in_the_same_turn().record(&[], ["true"]).run;
            run.header.sampled.then(|| run.capabilities[0].because.clone())
        });
        if let Some(reason) = reason {
            println!("skipped: {reason}");
            return None;
        }
        Some(self)
    }

    fn in_the_same_turn(&self) -> Lab {
        Lab { folder: tempfile::tempdir().unwrap(), _turn: self._turn.try_clone().unwrap() }
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("whylag.db")
    }

    /// `whylag --store STORE VERB`.
    pub fn verb(&self, verb: &str) -> Command {
        let mut command = whylag();
        command.arg("--store").arg(self.store()).arg(verb);
        command
    }

    /// `whylag record OPTIONS -- COMMAND`, not yet started.
    pub fn recording<S: AsRef<OsStr>>(
        &self,
        options: &[&str],
        command: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut record = self.verb("record");
        record.args(options).arg("--").args(command);
        record
    }

    /// Records a command, which has to succeed.
    pub fn record<S: AsRef<OsStr>>(
        &self,
        options: &[&str],
        command: impl IntoIterator<Item = S>,
    ) -> Recorded {
        let output = self.recording(options, command).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Recorded { run: self.run(), output }
    }

    /// Records a running target, `-p PID --time 1s` or the like.
    pub fn record_target(&self, options: &[&str]) -> Recorded {
        let output = self.verb("record").args(options).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Recorded { run: self.run(), output }
    }

    /// The newest run.
    pub fn run(&self) -> Run {
        serde_json::from_slice(&self.answer("export", &["--format", "json"])).unwrap()
    }

    /// All runs.
    pub fn runs(&self) -> Vec<RunSummary> {
        serde_json::from_slice(&self.answer("runs", &["--json"])).unwrap()
    }

    /// All runs; none while a recorder that has just been started still makes the store.
    pub fn runs_so_far(&self) -> Vec<RunSummary> {
        let output = self.verb("runs").arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// What `explain --json` says of the newest run.
    pub fn explain(&self) -> Value {
        serde_json::from_slice(&self.answer("explain", &["--json"])).unwrap()
    }

    /// Standard output of a verb, which has to succeed.
    pub fn answer(&self, verb: &str, options: &[&str]) -> Vec<u8> {
        let output = self.verb(verb).args(options).output().unwrap();
        assert!(output.status.success(), "{verb}: {output:?}");
        output.stdout
    }
}

/// A run and what was printed meanwhile.
pub struct Recorded {
    pub run: Run,
    pub output: Output,
}

/// A wait for a lock within the wait for another is part of the outer one, and counted; the kernel
/// has a few in any long recording.
const NESTED_WAITS: u64 = 20;
/// Some hosts hide tasks of their own from every BPF program, and then nobody tells which thread
/// follows such a task on a CPU: at most so many, and this part of the runs of programs. Seen here:
/// 12 in 15,812 switches.
const NOT_TOLD: u64 = 50;
const NOT_TOLD_PART: f64 = 0.01;

/// Exit status 2 and one line that names all of `named`.
#[track_caller]
pub fn assert_refused(output: &Output, named: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(named.iter().all(|name| errors.contains(name)), "{named:?} in {errors}");
}

/// An interrupt between the reading of a clock and the charge, for which the host stops the CPU,
/// makes the charge later than the millisecond that is allowed for: seen once in 5 million runs.
const LATE_CHARGES: u64 = 2;

/// Losses by kind, without those few that no test can prevent.
pub fn lost(run: &Run) -> BTreeMap<String, u64> {
    let few = NOT_TOLD + (run.cost.bpf_runs as f64 * NOT_TOLD_PART) as u64;
    let mut losses = run.losses.by_kind();
    losses.retain(|kind, count| match kind.as_str() {
        "nested lock waits" => *count > NESTED_WAITS,
        "clock steps backwards" => *count > LATE_CHARGES,
        "wakeups and switches (hidden by the host)" => *count > few,
        // Of the whole host, where others may start any number.
        "presence of programs (too many in a second)" => false,
        _ => true,
    });
    losses
}

impl Recorded {
    pub fn stdout(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).unwrap()
    }
}

/// Waits until `ready` says yes.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let started = Instant::now();
    while !ready() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The end of a child that has to end by itself within `limit`.
pub fn wait_for(child: &mut Child, limit: Duration) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > limit {
            let _ = child.kill();
            panic!("still there after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Copies a program that is to be executed. By a process of its own: a program cannot be executed
/// while anybody has it open for writing, and a child that another test starts meanwhile would have
/// it so.
pub fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to).status().unwrap();
    assert!(copied.success(), "{} to {}", from.as_ref().display(), to.display());
}

/// A child that does not outlive its test.
pub struct Helper(pub Child);

impl Helper {
    pub fn spawn(command: &mut Command) -> Helper {
        Helper(command.spawn().unwrap())
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
