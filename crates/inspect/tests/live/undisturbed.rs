//! A look does nothing to the threads of the process.

use std::fs;
use std::process::Command;
use std::time::Duration;

use inspect::live::{Process, bindings};

use crate::common::{Running, program};

/// A program of which two threads run and five wait.
struct Seven {
    _folder: tempfile::TempDir,
    running: Running,
    threads: Vec<u32>,
}

/// Of each thread: whether it waits, and how often it gave its CPU up, or had to.
type Switches = Vec<(bool, u64, u64)>;

impl Seven {
    fn start() -> Seven {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "loader", &["-O1", "-pthread", "-Wl,-z,lazy"]);
        let running = Running::start(Command::new(&program).args(["2", "4"]));
        let threads: Vec<u32> = fs::read_dir(format!("/proc/{}/task", running.pid()))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!(threads.len(), 7);
        let seven = Seven { _folder: folder, running, threads };
        // All have got to where they stay.
        while seven.switches().iter().filter(|(waits, ..)| *waits).count() != 5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        seven
    }

    fn row(&self, tid: u32, name: &str) -> String {
        let path = format!("/proc/{}/task/{tid}/status", self.running.pid());
        let status = fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}")).trim().to_owned()
    }

    fn switches(&self) -> Switches {
        let of = |tid: &u32| {
            let number = |name| self.row(*tid, name).parse::<u64>().unwrap();
            let waits = self.row(*tid, "State:").starts_with('S');
            (waits, number("voluntary_ctxt_switches:"), number("nonvoluntary_ctxt_switches:"))
        };
        self.threads.iter().map(of).collect()
    }
}

/// What a reader does to threads that wait and threads that run: nothing.
#[test]
fn no_thread_is_ever_stopped_or_woken() {
    let seven = Seven::start();
    let before = seven.switches();
    let mut states = std::collections::BTreeSet::new();
    let pid = seven.running.pid();
    let reader = std::thread::spawn(move || {
        let process = Process::open(pid).unwrap();
        for _ in 0..300 {
            bindings(&process).unwrap();
        }
    });
    while !reader.is_finished() {
        for tid in &seven.threads {
            assert_eq!(seven.row(*tid, "TracerPid:"), "0");
            states.insert(seven.row(*tid, "State:"));
        }
    }
    reader.join().unwrap();
    assert_eq!(
        states.iter().map(String::as_str).collect::<Vec<_>>(),
        ["R (running)", "S (sleeping)"]
    );
    for (before, after) in before.iter().zip(seven.switches()) {
        // Nothing made a running thread wait; nothing woke a waiting one, so that it never ran.
        assert_eq!(before.1, after.1, "voluntary switches");
        assert!(!before.0 || before.2 == after.2, "a waiting thread ran: {before:?} {after:?}");
    }
}

/// The counts of the test above, when the program is stopped for a moment by the two ways that there
/// are: they change, however short it was.
#[test]
fn a_stop_would_be_noticed() {
    let seven = Seven::start();
    let pid = i32::try_from(seven.running.pid()).unwrap();
    let before = seven.switches();
    // SAFETY: signals to our own child.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    while !seven.threads.iter().all(|tid| seven.row(*tid, "State:").starts_with('T')) {
        std::thread::yield_now();
    }
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    let after = seven.switches();
    assert!(before.iter().zip(&after).all(|(before, after)| before.1 < after.1), "{before:?}");

    let runs = seven.threads[before.iter().position(|(waits, ..)| !waits).unwrap()];
    let runs = i32::try_from(runs).unwrap();
    let count = || seven.row(runs.unsigned_abs(), "voluntary_ctxt_switches:");
    let before = count();
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: requests without memory, for a thread of our own child, and a wait that asks nothing.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, runs, none, none), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, runs, none, none), 0);
        assert_eq!(libc::waitpid(runs, std::ptr::null_mut(), libc::__WALL), runs);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, runs, none, none), 0);
    }
    assert_ne!(before, count());
}
