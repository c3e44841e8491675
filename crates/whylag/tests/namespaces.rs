//! whylag inside a PID namespace, and outside of the one that its target is in. Truth is what /proc
//! of the first namespace says: NSpid has the numbers of a process in both.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::clocks::Outside;
use common::family::{descendants, number_inside};
use common::programs::program;
use common::{Helper, Lab, wait_until};
use model::{Run, Target};

/// A shell command as the first process of a new PID namespace with its own /proc; ends with it.
struct Inside {
    _unshare: Helper,
    first: u32,
}

impl Inside {
    fn new(script: &str) -> Inside {
        let mut unshare = Command::new("unshare");
        unshare.args(["-pf", "--mount-proc", "--kill-child", "sh", "-c", script]);
        let unshare = Helper::spawn(unshare.stdout(Stdio::null()));
        let outer = unshare.0.id();
        let children = format!("/proc/{outer}/task/{outer}/children");
        let first = || std::fs::read_to_string(&children).ok()?.trim().parse().ok();
        wait_until("the first process of the namespace", || first().is_some());
        Inside { first: first().unwrap(), _unshare: unshare }
    }

    /// A family of 1 and 3 children with 6 of theirs.
    fn family() -> Inside {
        let inside = Inside::new(&format!("exec {} 3 0", program("family").display()));
        wait_until("the family", || descendants(inside.first).len() == 9);
        inside
    }

    /// `whylag record` in there; `kinds` are the namespaces that it enters, as nsenter has them.
    fn record(&self, lab: &Lab, kinds: &[&str], options: &[&str]) -> Output {
        let record = lab.verb("record");
        let mut nsenter = Command::new("nsenter");
        nsenter.args(["-t", &self.first.to_string()]).args(kinds).arg(record.get_program());
        nsenter.args(record.get_args()).args(options).env_remove("WHYLAG_STORE").output().unwrap()
    }

    fn run(&self, lab: &Lab, options: &[&str]) -> Run {
        let output = self.record(lab, &["-p", "-m"], options);
        assert!(output.status.success(), "{output:?}");
        lab.run()
    }

    /// The clocks of its processes, by their numbers in there.
    fn clocks(&self) -> Outside {
        let all = descendants(self.first).into_iter().chain([self.first]);
        Outside::at(all.map(|pid| (number_inside(pid), format!("/proc/{pid}/task/{pid}"))))
    }

    /// Numbers in there, by /proc out here.
    fn numbers(&self) -> BTreeSet<u32> {
        let all = descendants(self.first).into_iter().chain([self.first]);
        all.map(number_inside).collect()
    }
}

fn processes(run: &Run) -> BTreeSet<u32> {
    run.threads.iter().map(|thread| thread.tgid).collect()
}

#[test]
fn inside_a_process_and_its_children_have_the_numbers_of_the_namespace() {
    let Some(lab) = Lab::new() else { return };
    let inside = Inside::family();
    let outside = inside.clocks();
    let run = inside.run(&lab, &["-p", "1", "--follow", "--time", "1s"]);
    assert!(!run.header.sampled);
    assert_eq!(run.header.target, Target::Process(1));
    assert_eq!(processes(&run), inside.numbers());
    assert_eq!(run.threads.len(), 10);
    assert!(run.threads.iter().all(|t| t.comm == "family"));
    outside.agrees(&run, Duration::from_millis(900));
    let family = program("family").canonicalize().unwrap();
    let is_it = |p: &&model::Process| p.watched && p.exe == family.to_str().unwrap();
    assert_eq!(run.processes.iter().filter(is_it).count(), 10, "{:?}", run.processes);
}

#[test]
fn inside_one_thread_is_watched_by_its_number_there() {
    let Some(lab) = Lab::new() else { return };
    let inside = Inside::family();
    let child = number_inside(*descendants(inside.first).first().unwrap());
    let run = inside.run(&lab, &["-t", &child.to_string(), "--time", "300ms"]);
    assert_eq!(run.threads.iter().map(|t| t.tid).collect::<Vec<_>>(), [child]);
}

#[test]
fn inside_a_command_is_watched_and_symbols_are_found() {
    let Some(lab) = Lab::new() else { return };
    let inside = Inside::family();
    let jit = program("jit");
    let output = inside.record(&lab, &["-p", "-m"], &["--", jit.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let map = String::from_utf8(output.stdout).unwrap();
    std::fs::remove_file(map.trim()).unwrap();
    let run = lab.run();
    let own = processes(&run).into_iter().next().unwrap();
    assert_eq!(map.trim(), format!("/tmp/perf-{own}.map"), "the number that it knows itself by");
    assert!(has_frame(&run, "main") && has_frame(&run, "made_at_run_time"));
}

#[test]
fn inside_all_are_those_of_the_namespace() {
    let Some(lab) = Lab::new() else { return };
    let inside = Inside::family();
    let output = inside.record(&lab, &["-p", "-m"], &["-a", "--time", "1s"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.lines().next().unwrap().contains("PID namespace"), "{errors}");
    let run = lab.run();
    let numbers = inside.numbers();
    assert!(processes(&run).is_superset(&numbers), "{:?}", run.threads);
    let others: Vec<_> = run.threads.iter().filter(|t| !numbers.contains(&t.tgid)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn inside_what_is_not_visible_has_no_number() {
    let Some(lab) = Lab::new() else { return };
    let inside = Inside::family();
    // A neighbour on each CPU, out here, for a command in there that wants them.
    let cpus = std::thread::available_parallelism().unwrap().get();
    let spin = || Helper::spawn(Command::new("sh").args(["-c", "while :; do :; done"]));
    let _neighbours: Vec<_> = (0..cpus).map(|_| spin()).collect();
    let run =
        inside.run(&lab, &["--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
    let outside: Vec<_> = run.sums.runners.iter().filter(|r| r.runner_comm == "unknown").collect();
    assert!(!outside.is_empty(), "{:?}", run.sums.runners);
    assert!(outside.iter().all(|runner| runner.runner_tgid == 0));
    let inner = inside.numbers();
    let wrong = |comm: &str, tgid: u32| comm == "sh" && inner.contains(&tgid);
    assert!(
        !run.sums.runners.iter().any(|r| wrong(&r.runner_comm, r.runner_tgid)),
        "{:?}",
        run.sums.runners
    );
}

#[test]
fn another_proc_than_the_own_is_refused() {
    let lab = Lab::anywhere();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let inside = Inside::family();
    let output = inside.record(&lab, &["-p"], &["-p", "1", "--time", "300ms"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("/proc") && errors.contains("unshare --mount-proc"), "{errors}");
    assert!(lab.runs().is_empty());
}

/// `whylag record` behind `unshare OPTIONS`.
fn unshared(lab: &Lab, options: &[&str]) -> Output {
    let record = lab.recording(&[], ["true"]);
    let mut unshare = Command::new("unshare");
    unshare.args(options).arg(record.get_program()).args(record.get_args());
    unshare.env_remove("WHYLAG_STORE").output().unwrap()
}

#[test]
fn namespaces_in_which_it_cannot_work_are_named() {
    let Some(lab) = Lab::new() else { return };
    let refused = |options: &[&str], named: &str| {
        let output = unshared(&lab, options);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.contains(named), "{errors}");
    };
    refused(&["-p"], "unshare --fork --pid --mount-proc");
    refused(&["-f", "-T", "--monotonic", "1000"], "time namespace");
    let output = unshared(&lab, &["-Upfr", "--mount-proc"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("user namespace"), "{output:?}");
    assert!(output.status.success() && lab.run().header.sampled);
}

/// The program is only in the namespace's own /tmp, like that of a container in its image; so is
/// the file with the names of what it makes at run time.
#[test]
fn outside_a_process_of_a_container_has_its_symbols() {
    let Some(lab) = Lab::new() else { return };
    let jit = program("jit");
    let copy = format!(
        "exec 3<{}; mount -t tmpfs none /tmp; cat <&3 >/tmp/hidden; chmod 700 /tmp/hidden; exec /tmp/hidden 1000",
        jit.display()
    );
    let inside = Inside::new(&copy);
    wait_until("the program", || {
        std::fs::read_link(format!("/proc/{}/exe", inside.first))
            .is_ok_and(|exe| exe.ends_with("hidden"))
    });
    assert!(!std::path::Path::new("/tmp/hidden").exists());
    let run = lab.record_target(&["-p", &inside.first.to_string(), "--time", "1s"]).run;
    assert_eq!(processes(&run), BTreeSet::from([inside.first]));
    assert!(has_frame(&run, "main") && has_frame(&run, "made_at_run_time"));
    let hidden = run.processes.iter().find(|p| p.tgid == inside.first).unwrap();
    assert_eq!(hidden.exe, "/tmp/hidden");
    assert!(!hidden.build_id.is_empty());
}

fn has_frame(run: &Run, symbol: &str) -> bool {
    let mut frames = run.stacks.values().flat_map(|stack| &stack.frames);
    frames.any(|frame| frame.symbol.as_deref() == Some(symbol))
}
