//! `whylag bench`, against what the recorder sees from outside, and with bad input.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Lab, whylag};
use model::{Account, Bench, Metric, Syscall, WorkerKind};

/// Operations before each gate, which are not counted.
const WARM_UPS: u64 = 2;

fn measured(lab: &Lab, arguments: &[&str]) -> Bench {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    serde_json::from_slice(&lab.answer("bench", &arguments)).unwrap()
}

/// Exit status 2 and one line that names all of `named`.
#[track_caller]
fn assert_refused(arguments: &[&str], named: &[&str]) {
    let output = whylag().arg("bench").args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(named.iter().all(|name| errors.contains(name)), "{named:?} in {errors}");
}

#[test]
fn every_operation_is_a_real_one_that_the_kernel_has_seen() {
    let Some(lab) = Lab::new() else { return };
    let arguments = ["getppid", "--threads", "1,2", "--time", "300ms", "--with-kernel"];
    let bench = measured(&lab, &arguments);
    let steps = &bench.cases[0].steps;
    assert_eq!(steps.iter().map(|step| step.workers).collect::<Vec<_>>(), [1, 2]);
    let warm_ups =
        |step: &model::BenchStep| WARM_UPS * u64::from(step.workers) * step.rounds.len() as u64;
    let operated: u64 = steps.iter().map(|step| step.operations + warm_ups(step)).sum();

    let run = lab.run();
    let getppid = Syscall::named("getppid").unwrap();
    let seen = run.seconds.iter().filter(|second| second.metric == Metric::Syscall(getppid));
    let seen: u64 = seen.map(|second| second.histogram.count()).sum();
    assert_eq!(seen, operated, "the kernel's count against the benchmark's");
    for step in steps {
        let accounts = step.accounts.as_ref().unwrap();
        let called = accounts.get(Account::Syscall(getppid));
        assert!(called > step.system_ns / 4, "{called} ns in getppid, {step:?}");
        let used = step.user_ns + step.system_ns;
        assert!(used < step.wall_ns * u64::from(step.workers) * 11 / 10, "{step:?}");
    }
}

#[test]
fn a_run_is_stored_and_shown_again() {
    let lab = Lab::anywhere();
    let first = lab.answer("bench", &["getppid", "--processes", "1,2", "--time", "100ms"]);
    let run = lab.run();
    assert_eq!(run.header.target.to_string(), "bench getppid --processes 1,2 --time 100ms");
    assert!(run.fact("kernel.release").is_some());
    let bench = run.bench.unwrap();
    assert!(bench.cases[0].steps.iter().all(|step| step.kind == WorkerKind::Processes));
    assert_eq!(bench.empty.workers, 1);
    assert!(bench.empty.net_ns < bench.cases[0].steps[0].net_ns);
    let shown = String::from_utf8(lab.answer("show", &[])).unwrap();
    assert!(shown.contains(&String::from_utf8(first).unwrap()), "{shown}");
}

#[test]
fn a_population_is_there_while_it_is_measured_and_its_ceiling_is_told() {
    let lab = Lab::anywhere();
    let bench = measured(&lab, &["unix-socket", "--population", "0,300,10k", "--time", "100ms"]);
    let case = &bench.cases[0];
    let sizes: Vec<u64> = case.steps.iter().map(|step| step.population).collect();
    assert_eq!(sizes[..2], [0, 300]);
    if sizes.len() < 3 {
        assert!(case.stopped.as_ref().unwrap().contains("no more than"), "{:?}", case.stopped);
    }
    let huge = measured(&lab, &["unix-socket", "--population", "0,1000000M", "--time", "100ms"]);
    assert_eq!(huge.cases[0].steps.len(), 1);
    assert!(huge.cases[0].stopped.as_ref().unwrap().contains("half of the"));
}

#[test]
fn bad_input() {
    assert_refused(&["getpidd"], &["getpidd", "getppid", "--list"]);
    assert_refused(&["getppid", "--threads", "0"], &["0 workers", "1 to 1024"]);
    assert_refused(&["getppid", "--processes", "4000000"], &["4000000", "1 to 1024"]);
    assert_refused(&["getppid", "--population", "1k"], &["getppid", "no population"]);
    assert_refused(&["getppid", "--time", "1ns"], &["10ms"]);
    let output = whylag().args(["bench", "getppid", "--population", "many"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("'many' is no count"));
}
