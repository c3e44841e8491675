//! `whylag compare`, on real benchmark runs, on one that is made slower in the store, and on
//! recordings; and what other verbs say of a benchmark.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;

use common::{Lab, assert_refused, whylag};
use model::{Batch, BenchRound, Run, RunEnd, RunId};
use serde_json::Value;
use store::{Sqlite, Store};

/// How many rounds each step of run 1 has: more than a comparison needs.
const ROUNDS: usize = 10;

/// A lab with run 1: getppid, with 1 and 2 processes.
fn measured() -> Lab {
    let lab = Lab::anywhere_beside_others();
    lab.answer("bench", &["getppid", "--processes", "1,2", "--time", "200ms"]);
    let mut run = lab.run();
    fs::remove_file(lab.store()).unwrap();
    // On a busy machine the time is over after fewer rounds, far from each other: what is compared
    // here is not the machine.
    for step in run.bench.iter_mut().flat_map(|bench| &mut bench.cases[0].steps) {
        let first = step.rounds[0].clone();
        let rounds = (0..ROUNDS).map(|n| costing(&first, 1.0 + n as f64 / 1e4));
        step.rounds = rounds.collect();
    }
    assert_eq!(stored(&lab, &run), RunId(1));
    lab
}

/// A round in which every operation costs so many times as much.
fn costing(round: &BenchRound, times: f64) -> BenchRound {
    let (median_ns, rate) = (round.median_ns * times, round.rate / times);
    BenchRound { median_ns, rate, ..round.clone() }
}

/// Stores `run` again with every operation of its first step so many times as dear.
fn made_slower(lab: &Lab, run: &Run, times: f64) -> RunId {
    let mut slower = run.clone();
    for round in &mut slower.bench.as_mut().unwrap().cases[0].steps[0].rounds {
        *round = costing(round, times);
    }
    stored(lab, &slower)
}

fn stored(lab: &Lab, run: &Run) -> RunId {
    let mut store = Sqlite::open(&lab.store()).unwrap();
    let id = store.begin(&run.header).unwrap();
    let batch = Batch {
        heartbeat_ns: run.heartbeat_ns,
        bench: run.bench.clone(),
        facts: run.facts.clone(),
        ..Batch::default()
    };
    store.append(id, &batch).unwrap();
    let end = RunEnd { ended_ns: run.heartbeat_ns, exit_status: None, reason: "done".to_owned() };
    store.finish(id, &end).unwrap();
    id
}

#[test]
fn the_exit_status_is_3_only_if_a_threshold_was_set_and_crossed() {
    let lab = measured();
    let run = lab.run();
    let slower = made_slower(&lab, &run, 2.0).to_string();
    let first = run.id.to_string();
    let compare = |arguments: &[&str]| {
        let output = lab.verb("compare").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, text) = compare(&[&first, &slower]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("slower in 1 of 2 steps: getppid, 1 process: 2.00x"), "{text}");
    assert_eq!(compare(&[&first, &slower, "--threshold", "5%"]).0, Some(3));
    assert_eq!(compare(&[&first, &slower, "--threshold", "150%"]).0, Some(0));
    assert_eq!(compare(&[&slower, &first, "--threshold", "5%"]).0, Some(0), "faster is no harm");

    let (status, json) = compare(&[&first, &slower, "--json"]);
    assert_eq!(status, Some(0));
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["steps"][0]["verdict"], "slower");
    assert_eq!(value["steps"][1]["verdict"], "no_difference");
    assert!(
        (value["steps"][0]["median"]["ratio"]["estimate"].as_f64().unwrap() - 2.0).abs() < 1e-9
    );
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let lab = measured();
    let value: Value =
        serde_json::from_slice(&lab.answer("compare", &["1", "1", "--json"])).unwrap();
    for step in value["steps"].as_array().unwrap() {
        assert_eq!(step["verdict"], "no_difference", "{step}");
        assert_eq!(step["median"]["ratio"]["estimate"], 1.0);
    }
    assert_eq!(value["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_line() {
    let lab = measured();
    lab.answer("bench", &["getppid", "--threads", "1", "--time", "100ms"]);
    let compare = |arguments: &[&str]| lab.verb("compare").args(arguments).output().unwrap();
    assert_refused(&compare(&["1", "2"]), &["runs 1 and 2", "no step in common"]);
    assert_refused(&compare(&["1", "77"]), &["77"]);
    for (arguments, named) in [
        (["compare", "1", "2", "--threshold", "none"], "percentage"),
        (["compare", "1", "2", "--threshold", "0"], "percentage"),
    ] {
        let output = whylag().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{arguments:?}");
    }
}

/// A recorded run of the tree.
fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(format!("{name}.whylag")).to_str().unwrap().to_owned()
}

#[test]
fn recordings_are_compared_to_the_nanosecond_and_drawn() {
    let lab = Lab::anywhere_beside_others();
    let (faulty, fixed) = (fixture("mmap-lock-faulty"), fixture("mmap-lock-fixed"));
    let flame = lab.folder.path().join("diff.svg");
    let flame_option = ["--flame", flame.to_str().unwrap()];
    let answer =
        lab.answer("compare", &[&[&faulty[..], &fixed, "--json"], &flame_option[..]].concat());
    let value: Value = serde_json::from_slice(&answer).unwrap();
    for (place, side) in ["a", "b"].into_iter().enumerate() {
        let rows = value["accounts"].as_array().unwrap().iter();
        let sum: u64 = rows.map(|row| row["ns"][place].as_u64().unwrap()).sum();
        assert_eq!(value[side]["wall_ns"].as_u64(), Some(sum));
    }
    let causes = value["causes"].as_array().unwrap();
    let lock = causes.iter().find(|cause| cause["cause"] == "mmap-lock").unwrap();
    assert_eq!((lock["runs"][0].as_u64(), lock["runs"][1].as_u64()), (Some(1), Some(0)));
    assert!(value["warnings"][0].as_str().unwrap().starts_with("1 and 1 runs"), "{value}");
    let svg = fs::read_to_string(&flame).unwrap();
    assert!(svg.contains("rwsem_down_write_slowpath"), "the lock is among what differs");
    // With runs enough on each side, what changed is shown to have.
    let sides = [vec!["--json"], vec![&faulty; 5], vec!["--"], vec![&fixed; 5]].concat();
    let value: Value = serde_json::from_slice(&lab.answer("compare", &sides)).unwrap();
    let causes = value["causes"].as_array().unwrap();
    let lock = causes.iter().find(|cause| cause["cause"] == "mmap-lock").unwrap();
    assert!(lock["p"].as_f64().unwrap() < 0.01, "{causes:?}");
    assert!(value["summary"].as_str().unwrap().contains("mmap-lock went (in 5 of 5 runs"));
    let text = String::from_utf8(lab.answer("compare", &[&faulty, &fixed])).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn recordings_that_cannot_be_compared_are_refused_in_a_line() {
    let lab = measured();
    let recorded = fixture("mmap-lock-fixed");
    let timers = fixture("timer-slack-faulty");
    let compare = |arguments: &[&str]| lab.verb("compare").args(arguments).output().unwrap();
    assert_refused(&compare(&["1", &recorded]), &["is no benchmark"]);
    assert_refused(&compare(&["1", &recorded, "--", &recorded]), &["run 1 is a benchmark"]);
    assert_refused(&compare(&[&timers, &recorded]), &["no recording of threads"]);
    assert_refused(&compare(&["before", "after"]), &["before", "record --set"]);
    assert_refused(&compare(&["1"]), &["two sides"]);
    assert_refused(&compare(&[&recorded, &recorded, "--threshold", "5%"]), &["--threshold"]);
    assert_refused(&compare(&["1", "1", "--flame", "x.svg"]), &["--flame", "benchmarks"]);
}

#[test]
fn a_benchmark_that_was_not_recorded_has_nothing_to_explain_or_draw() {
    let lab = measured();
    let answer = |verb: &str, arguments: &[&str]| lab.verb(verb).args(arguments).output().unwrap();
    assert_refused(&answer("explain", &[]), &["run 1", "--with-kernel"]);
    assert_refused(&answer("export", &["--format", "svg"]), &["run 1", "--with-kernel"]);
    assert_refused(&answer("export", &["--format", "folded"]), &["run 1", "--with-kernel"]);
    let csv = String::from_utf8(lab.answer("export", &["--format", "csv"])).unwrap();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows[1].starts_with("empty,") && rows[3].starts_with("getppid,processes,2,0,"));
    let exported: Run =
        serde_json::from_slice(&lab.answer("export", &["--format", "json"])).unwrap();
    assert_eq!(exported.bench, lab.run().bench);
    let runs = String::from_utf8(lab.answer("runs", &[])).unwrap();
    assert!(runs.contains("bench getppid --processes 1,2"), "{runs}");
    assert!(!runs.contains(" 0 "), "{runs}");
}
