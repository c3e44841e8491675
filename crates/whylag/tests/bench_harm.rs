//! Whatever ends `whylag bench`, nothing of it is left: no System V object, no file, no process.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use common::{Lab, wait_for, wait_until};
use procfs::process::{Stat, all_processes};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

/// Cases that make what can be left behind, and how many processes take part in each at least:
/// the one that asks, the one that measures, workers, helpers.
const CASES: [(&[&str], usize); 10] = [
    (&["sem-sysv-population", "--population", "1k", "--processes", "2"], 4),
    (&["shm-attach", "--processes", "2"], 4),
    (&["unix-socket-bound", "--population", "2k", "--processes", "2"], 5),
    (&["unix-socket-read-proc", "--population", "2", "--processes", "2"], 7),
    (&["proc-scan", "--population", "500", "--processes", "2"], 14),
    (&["dlopen", "--processes", "2"], 4),
    (&["create", "--processes", "2"], 4),
    (&["sysv-msg", "--processes", "2"], 4),
    (&["pipe-ping-pong", "--processes", "2"], 4),
    (&["posix-mq", "--processes", "2"], 4),
];

/// A benchmark in a process group and with a folder for temporary files of its own.
struct Running {
    child: Child,
    temporary: TempDir,
}

impl Running {
    fn start(lab: &Lab, arguments: &[&str], time: &str) -> Running {
        let temporary = tempfile::tempdir().unwrap();
        let mut bench = lab.verb("bench");
        bench.args(arguments).args(["--time", time]).env("TMPDIR", temporary.path());
        bench.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Running { child: bench.spawn().unwrap(), temporary }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its processes, as long as they are not only waited for.
    fn processes(&self) -> Vec<Stat> {
        let group = self.pid().as_raw_nonzero().get();
        let all = all_processes().unwrap().filter_map(|process| process.ok()?.stat().ok());
        all.filter(|stat| stat.pgrp == group && stat.state != 'Z').collect()
    }

    /// The process that measures.
    fn measuring(&self) -> Pid {
        let parent = self.pid().as_raw_nonzero().get();
        let child = self.processes().into_iter().find(|stat| stat.ppid == parent);
        Pid::from_raw(child.unwrap().pid).unwrap()
    }

    /// A process that is measured; there is none between two rounds.
    fn worker(&self) -> Option<Pid> {
        let worker = self.processes().into_iter().find(|stat| stat.comm == "bench-worker");
        worker.and_then(|stat| Pid::from_raw(stat.pid))
    }

    /// A process that holds a part of a population.
    fn helper(&self) -> Option<Pid> {
        let parent = self.measuring().as_raw_nonzero().get();
        let is_helper = |stat: &Stat| stat.ppid == parent && stat.comm != "bench-worker";
        Pid::from_raw(self.processes().into_iter().find(is_helper)?.pid)
    }

    /// Lines of /proc/sysvipc whose key is one of this run's: 'W', then the last byte of its pid.
    fn objects(&self) -> Vec<String> {
        let tag = 0x57 << 8 | self.child.id() & 0xff;
        let is_ours = |line: &&str| {
            let key = line.split_ascii_whitespace().next().and_then(|key| key.parse::<i32>().ok());
            key.is_some_and(|key| key.cast_unsigned() >> 16 == tag)
        };
        let mut ours = Vec::new();
        for table in ["sem", "shm", "msg"] {
            let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap();
            ours.extend(text.lines().filter(is_ours).map(|line| format!("{table}: {line}")));
        }
        ours
    }

    fn files(&self) -> usize {
        fs::read_dir(self.temporary.path()).unwrap().count()
    }

    #[track_caller]
    fn assert_nothing_is_left(&self, after: &str) {
        for _ in 0..100 {
            if self.processes().is_empty() && self.objects().is_empty() && self.files() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let processes: Vec<_> = self.processes().into_iter().map(|s| (s.pid, s.comm)).collect();
        panic!("after {after}: {processes:?}, {:?}, {} files", self.objects(), self.files());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// So many cases are under way at the same time: begun one after another, their pids, of which the
/// keys of System V objects have the last byte, differ.
const TOGETHER: usize = 10;

/// Has each case under way, ends it by `end`, and checks how it ended and that nothing is left.
fn end_each(how: &str, end: impl Fn(&Running), is_sensible: impl Fn(ExitStatus) -> bool) {
    let lab = Lab::anywhere();
    for cases in CASES.chunks(TOGETHER) {
        let mut all: Vec<_> =
            cases.iter().map(|(arguments, _)| Running::start(&lab, arguments, "30s")).collect();
        for (running, (arguments, processes)) in all.iter_mut().zip(cases) {
            wait_until("the case to be under way", || running.processes().len() >= *processes);
            end(running);
            let status = wait_for(&mut running.child, Duration::from_secs(10));
            assert!(is_sensible(status), "{arguments:?} after {how}: {status}");
            running.assert_nothing_is_left(&format!("{how} of {arguments:?}"));
        }
    }
}

#[test]
fn a_normal_end() {
    let lab = Lab::anywhere();
    for cases in CASES.chunks(TOGETHER) {
        let all = cases.iter().map(|(arguments, _)| Running::start(&lab, arguments, "100ms"));
        for running in &mut all.collect::<Vec<_>>() {
            assert!(wait_for(&mut running.child, Duration::from_secs(30)).success());
            running.assert_nothing_is_left("a normal end");
        }
    }
}

#[test]
fn ctrl_c() {
    let end = |running: &Running| kill_process_group(running.pid(), Signal::INT).unwrap();
    end_each("Ctrl-C", end, |status| status.code() == Some(130));
}

#[test]
fn sigterm_to_the_asking_process_alone() {
    let end = |running: &Running| kill_process(running.pid(), Signal::TERM).unwrap();
    end_each("SIGTERM", end, |status| status.code() == Some(130));
}

#[test]
fn a_kill_of_the_asking_process() {
    let end = |running: &Running| kill_process(running.pid(), Signal::KILL).unwrap();
    end_each("kill -9 of whylag", end, |status| status.signal() == Some(9));
}

#[test]
fn a_kill_of_the_measuring_process() {
    let end = |running: &Running| kill_process(running.measuring(), Signal::KILL).unwrap();
    end_each("kill -9 of the measuring process", end, |status| status.code() == Some(1));
}

#[test]
fn a_kill_of_a_worker_ends_the_ladder() {
    let end = |running: &Running| {
        wait_until("a worker to be killed", || {
            running.worker().is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
        });
    };
    end_each("kill -9 of a worker", end, |status| status.success());
}

#[test]
fn a_kill_of_a_helper_is_noticed() {
    let lab = Lab::anywhere();
    let mut running =
        Running::start(&lab, &["unix-socket", "--population", "10k", "--processes", "1"], "30s");
    wait_until("a worker beside the helper", || running.worker().is_some());
    kill_process(running.helper().unwrap(), Signal::KILL).unwrap();
    assert!(wait_for(&mut running.child, Duration::from_secs(10)).success());
    running.assert_nothing_is_left("kill -9 of a helper");
    let case = &lab.run().bench.unwrap().cases[0];
    assert!(case.stopped.as_ref().unwrap().contains("a helper process died"), "{case:?}");
    assert!(case.steps.is_empty());
}

#[test]
fn what_a_kill_of_all_processes_leaves_is_removed_by_the_next_run() {
    let lab = Lab::anywhere();
    let (arguments, processes) = CASES[0];
    let mut running = Running::start(&lab, arguments, "30s");
    wait_until("the case to be under way", || running.processes().len() >= processes);
    kill_process_group(running.pid(), Signal::KILL).unwrap();
    assert_eq!(wait_for(&mut running.child, Duration::from_secs(10)).signal(), Some(9));
    assert!(running.objects().len() >= 1000 && running.files() == 1);
    let mut next = lab.verb("bench");
    next.args(["getppid", "--time", "10ms"]).env("TMPDIR", running.temporary.path());
    assert!(next.output().unwrap().status.success());
    running.assert_nothing_is_left("the next run");
}

#[test]
fn a_ladder_of_a_billion_stops_at_the_ceiling() {
    let lab = Lab::anywhere();
    for case in ["sem-sysv-population", "unix-socket-bound", "fork-population", "proc-scan"] {
        let arguments = [case, "--population", "0,1000M", "--time", "50ms", "--json"];
        let bench: model::Bench = serde_json::from_slice(&lab.answer("bench", &arguments)).unwrap();
        let case = &bench.cases[0];
        assert_eq!(case.steps.len(), 1, "{}", case.id);
        let why = case.stopped.as_ref().unwrap();
        assert!(why.contains("no more than") && why.contains("half of the"), "{why}");
    }
}
