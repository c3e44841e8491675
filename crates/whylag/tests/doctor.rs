//! `whylag doctor` on this host and on real processes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use common::lazy::{CALLS, lazy, ready};
use common::nobody::{as_nobody, for_anybody};
use common::{Helper, Lab, assert_refused, whylag};
use inspect::live::{Process, bindings};
use model::{Account, CheckResult, Checkup, EventKind, Unbound};
use serde_json::Value;

fn doctor(arguments: &[&str]) -> Output {
    whylag().arg("doctor").args(arguments).output().unwrap()
}

fn checkup(arguments: &[&str]) -> Checkup {
    let output = doctor(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fact<'c>(checkup: &'c Checkup, id: &str) -> &'c str {
    &checkup.checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("{id}")).fact
}

#[test]
fn the_host_is_described_as_it_is() {
    let began = Instant::now();
    let found = checkup(&[]);
    println!("{} checks in {:?}", found.checks.len(), began.elapsed());
    let read = |path: &str| fs::read_to_string(path).unwrap().trim().to_owned();
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    assert_eq!(fact(&found, "clocksource"), read(clock));
    assert_eq!(fact(&found, "swappiness"), read("/proc/sys/vm/swappiness"));
    let queue: u64 = read("/proc/sys/net/core/somaxconn").parse().unwrap();
    assert_eq!(fact(&found, "somaxconn"), queue.to_string());
    assert_eq!(found.host, read("/proc/sys/kernel/hostname"));
    assert!(found.checks.len() >= 60 + 13 + 31, "{}", found.checks.len());
    // The fingerprint, too.
    let release = found.facts.iter().find(|fact| fact.name == "kernel.release").unwrap();
    assert_eq!(release.value, read("/proc/sys/kernel/osrelease"));

    // Grouped by subject, and each of them once.
    let subjects: Vec<_> =
        found.checks.chunk_by(|a, b| a.subject == b.subject).map(|c| c[0].subject).collect();
    assert!(subjects.is_sorted() && subjects.len() == 8, "{subjects:?}");
    let strict = doctor(&["--strict"]).status.code();
    if found.count(CheckResult::Bad) == 0 {
        // What passes by may have become bad in between.
        assert!(matches!(strict, Some(0 | 3)));
    } else if found
        .checks
        .iter()
        .any(|c| c.verdict == CheckResult::Bad && c.compared == model::Compared::Setting)
    {
        assert_eq!(strict, Some(3));
    }
    assert_eq!(doctor(&[]).status.code(), Some(0));
}

#[test]
fn without_privilege_it_says_what_it_could_not_read() {
    let (_folder, binary) = for_anybody();
    let mut command = Command::new(binary);
    command.args(["doctor", "--json", "-p", &std::process::id().to_string()]);
    let Ok(output) = as_nobody(command).output() else {
        println!("skipped: cannot become another user");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let found: Checkup = serde_json::from_slice(&output.stdout).unwrap();
    let unknown: Vec<&str> = found
        .checks
        .iter()
        .filter(|check| {
            check.verdict == CheckResult::Unknown && check.fact.contains("no permission")
        })
        .map(|check| check.id.as_str())
        .collect();
    assert!(unknown.contains(&"lazy-binding") && unknown.contains(&"environment"), "{unknown:?}");
    assert_eq!(fact(&found, "clocksource"), fact(&checkup(&[]), "clocksource"));
    let part = |id: &str| fact(&found, id).to_owned();
    assert_eq!(
        (part("part-threads"), part("cause-mmap-lock")),
        ("off".into(), "not looked at here".into())
    );
}

#[test]
fn a_process_is_described_with_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    for called in [0, 2, 6] {
        let helper = lazy(folder.path(), called);
        let found = checkup(&["-p", &helper.pid()]);
        let own = found.unbound.iter().find(|one| one.library.ends_with("/lazy")).unwrap();
        let expected: Vec<&str> = CALLS[called..].to_vec();
        let mut symbols: Vec<&str> = own.symbols.iter().map(String::as_str).collect();
        symbols.sort_by_key(|symbol| CALLS.iter().position(|call| call == symbol));
        assert_eq!(symbols, expected);
        // atoi, read and write are bound by now.
        assert_eq!(own.slots, CALLS.len() + 3);
        let told = fact(&found, "lazy-binding");
        let all: usize = found.unbound.iter().map(|one| one.symbols.len()).sum();
        assert!(told.starts_with(&format!("{all} of ")), "{told}, {all}");
        // The C library's own slots are no reason to shout.
        assert_eq!(told.ends_with(&format!(", {} its own", 6 - called)), called < 6, "{told}");
        let binding = found.checks.iter().find(|check| check.id == "lazy-binding").unwrap();
        assert_eq!(binding.verdict == CheckResult::Good, called == 6, "{binding:?}");
        assert_eq!(fact(&found, "threads"), "1 thread");
        assert_eq!(fact(&found, "program"), "position independent, bound at first calls");
        assert!(found.facts.iter().any(|fact| fact.name == "binary.path"));

        let listed = doctor(&["-p", &helper.pid(), "--plt"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        let head = format!("/lazy: {} of 9 slots\n", 6 - called);
        assert_eq!(listed.contains(&head), called < 6, "{listed}");
        let json = doctor(&["-p", &helper.pid(), "--plt", "--json"]).stdout;
        assert_eq!(serde_json::from_slice::<Vec<Unbound>>(&json).unwrap(), found.unbound);
    }
}

/// A thread that runs, one that waits, and a reader of their process: by the recorder's accounts the
/// first never sleeps and the second never wakes.
#[test]
fn a_process_that_is_looked_at_does_not_notice() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.folder.path().join("loader");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = source.join("../inspect/tests/programs/loader.c");
    let mut cc = Command::new("cc");
    let cc = cc.args(["-O1", "-pthread", "-Wl,-z,lazy", "-o"]).arg(&program).arg(source);
    assert!(cc.status().unwrap().success());
    let mut command = Command::new(program);
    command.args(["1", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut helper = Helper::spawn(command.env_remove("LD_BIND_NOW"));
    ready(&mut helper);

    let pid = helper.0.id();
    let is_over = AtomicBool::new(false);
    let (recorded, readings) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut readings = 0;
            while !is_over.load(Ordering::Relaxed) {
                let process = Process::open(pid).unwrap();
                assert!(
                    bindings(&process).unwrap().iter().any(|library| library.unbound().count() > 0)
                );
                readings += 1;
            }
            readings
        });
        let recorded = lab.record_target(&["-p", &pid.to_string(), "--time", "1s"]);
        is_over.store(true, Ordering::Relaxed);
        (recorded, reader.join().unwrap())
    });
    println!("read {readings} times");
    assert!(readings > 50, "{readings}");
    let threads = &recorded.run.threads;
    let ran = |account: Account| account.is_running();
    let (runs, waits): (Vec<_>, Vec<_>) =
        threads.iter().partition(|thread| thread.accounts.sum_of(ran) > 0);
    assert_eq!((runs.len(), waits.len()), (1, 2), "{threads:#?}");
    let blocked = |account: Account| matches!(account, Account::Blocked(_));
    for thread in &runs {
        assert_eq!((thread.sleeps, thread.accounts.sum_of(blocked)), (0, 0), "{thread:#?}");
    }
    for thread in &waits {
        assert_eq!(thread.accounts.sum_of(blocked), thread.wall_ns(), "{thread:#?}");
    }
    assert!(recorded.run.events.iter().all(|event| event.kind != EventKind::Signal));
}

/// A file with one fact of another host.
fn altered(folder: &Path, checkup: &Checkup) -> PathBuf {
    let mut other = checkup.clone();
    other.host = "other".to_owned();
    let clock = other.checks.iter_mut().find(|check| check.id == "clocksource").unwrap();
    clock.fact = "hpet".to_owned();
    clock.verdict = CheckResult::Bad;
    let path = folder.join("other.json");
    fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
    path
}

#[test]
fn only_what_differs_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let here = checkup(&[]);
    let path = folder.path().join("here.json");
    fs::write(&path, serde_json::to_vec(&here).unwrap()).unwrap();
    let (path, other) = (path.to_str().unwrap().to_owned(), altered(folder.path(), &here));
    let other = other.to_str().unwrap();
    let clock = fact(&here, "clocksource");

    let two = doctor(&["--diff", &path, other]);
    let text = String::from_utf8(two.stdout).unwrap();
    assert!(text.contains(&format!("\n  clocksource: {clock} -> hpet\n")), "{text}");
    assert!(text.contains("1 of "), "{text}");
    assert_eq!(doctor(&["--diff", &path, other, "--strict"]).status.code(), Some(3));
    assert_eq!(doctor(&["--diff", other, &path, "--strict"]).status.code(), Some(0));

    // With the host as it is now: what was chosen is the same.
    let now = doctor(&["--diff", &path, "--json"]);
    let now: Value = serde_json::from_slice(&now.stdout).unwrap();
    for difference in now["differences"].as_array().unwrap() {
        let name = difference["name"].as_str().unwrap();
        let check = here.checks.iter().find(|check| check.id == name).unwrap();
        assert_ne!(check.compared, model::Compared::Setting, "{difference}");
    }

    // A stored run has the facts of the fingerprint.
    let lab = Lab::anywhere();
    lab.answer("bench", &["getppid", "--processes", "1", "--time", "100ms"]);
    let run = lab.run().id.to_string();
    let from_run = String::from_utf8(lab.answer("doctor", &["--diff", &run])).unwrap();
    assert!(from_run.contains("not compared: checks: run 1 has none"), "{from_run}");
    assert!(!from_run.contains("clocksource:"), "{from_run}");
    assert!(
        from_run.contains("0 of ") && from_run.contains("checks or facts differ"),
        "{from_run}"
    );
}

#[test]
fn what_two_recordings_differ_in_is_found() {
    let Some(lab) = Lab::new() else { return };
    lab.record(&[], ["true"]);
    let bound = lab.recording(&[], ["true"]).env("LD_BIND_NOW", "1").output().unwrap();
    assert!(bound.status.success(), "{bound:?}");
    let text = String::from_utf8(lab.answer("doctor", &["--diff", "1", "2"])).unwrap();
    assert!(text.starts_with("run 1 -> run 2\n\nKnown to matter for latency\n"), "{text}");
    assert!(text.contains("\n  env.LD_BIND_NOW: (not set) -> 1\n"), "{text}");
    // What a read of the clock costs is measured each time, and follows what else the CPUs do.
    let differ = text.lines().skip(1).filter(|line| line.contains(" -> "));
    let others: Vec<_> = differ.filter(|line| !line.starts_with("  clock-read: ")).collect();
    assert_eq!(others.len(), 1, "{text}");
}

#[test]
fn what_is_not_there_is_refused_in_a_line() {
    assert_refused(&doctor(&["-p", "4194303"]), &["there is no process 4194303"]);
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().to_string();
    let status = format!("/proc/{pid}/status");
    common::wait_until("its end", || fs::read_to_string(&status).unwrap().contains("State:\tZ"));
    assert_refused(&doctor(&["-p", &pid]), &["has exited already"]);
    assert_refused(&doctor(&["-p", &pid, "--plt"]), &["has exited already"]);
    child.wait().unwrap();
    assert_refused(&doctor(&["--diff", "/no/such/file"]), &["/no/such/file", "No such file"]);
    assert_refused(&doctor(&["--diff", "/etc/passwd"]), &["/etc/passwd", "doctor --json"]);
    for wrong in [&["--plt"][..], &["--watch"], &["--diff", "1", "2", "3"], &["--time", "1s"]] {
        assert_eq!(doctor(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
