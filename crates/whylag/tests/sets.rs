//! Order in the store: labels, sets, and the runs that the options of `whylag runs` choose.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::made_up::MadeUp;
use common::{Lab, assert_refused};
use serde_json::Value;

/// Twelve runs, one a day: half of them before, every other one on another host, the last three
/// with a cause.
fn lab() -> Lab {
    let lab = Lab::anywhere_beside_others();
    let mut store = lab.write();
    for day in 0..12 {
        let mut run = MadeUp::on_day(day);
        run.labels = vec![("set", if day < 6 { "before" } else { "after" }), ("build", "42")];
        run.command = if day == 11 { "./other job" } else { "./server" };
        run.figures.facts.insert("host.name".into(), ["a", "b"][day % 2].into());
        if day >= 9 {
            run.has_cause("lazy-binding", 0.3);
        }
        run.store(&mut store);
    }
    lab
}

#[test]
fn runs_are_found_by_label_set_command_host_cause_and_time() {
    let lab = lab();
    let found = |options: &[&str]| -> Vec<i64> {
        let answer = lab.answer("runs", &[&["--json"], options].concat());
        let runs: Value = serde_json::from_slice(&answer).unwrap();
        runs.as_array().unwrap().iter().map(|run| run["id"].as_i64().unwrap()).collect()
    };
    assert_eq!(found(&[]).len(), 12);
    assert_eq!(found(&["--set", "before"]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(found(&["--label", "set=after", "--label", "build=42"]), [7, 8, 9, 10, 11, 12]);
    assert_eq!(found(&["--label", "build=43"]), [0; 0]);
    assert_eq!(found(&["--command", "other"]), [12]);
    assert_eq!(found(&["--host", "b"]), [2, 4, 6, 8, 10, 12]);
    assert_eq!(found(&["--cause", "lazy-binding"]), [10, 11, 12]);
    assert_eq!(found(&["--cause", "lazy-binding", "--host", "a"]), [11]);
    assert_eq!(found(&["--since", "1970-01-10", "--until", "1970-01-11 12:01"]), [10, 11]);
    assert_eq!(found(&["--since", "7d"]), [0; 0], "they are of 1970");
    let refused = lab.verb("runs").args(["--cause", "no-such"]).output().unwrap();
    assert_refused(&refused, &["no-such"]);
}

#[test]
fn a_proof_takes_sets_by_name_label_and_range() {
    let lab = lab();
    let runs = |names: &[&str]| -> Vec<i64> {
        let answer = lab.answer("prove", &[&["--json"], names].concat());
        let proof: Value = serde_json::from_slice(&answer).unwrap();
        let trials = proof["trials"].as_array().unwrap();
        trials.iter().map(|trial| trial["run"].as_i64().unwrap()).collect()
    };
    let expected = [1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12];
    assert_eq!(runs(&["before", "--", "after"]), expected);
    assert_eq!(runs(&["build=42,set=before", "--", "set=after"]), expected);
    assert_eq!(runs(&["1..6", "--", "7..9", "10", "11..12"]), expected);
    let prove = |names: &[&str]| lab.verb("prove").args(names).output().unwrap();
    assert_refused(&prove(&["before", "--", "later"]), &["later", "--set", "NAME=VALUE"]);
    assert_refused(&prove(&["before", "--", "7..8"]), &["6 runs before and 2 after"]);
}

#[test]
fn a_grid_says_what_the_bad_runs_have_and_takes_500_runs() {
    let lab = Lab::anywhere_beside_others();
    let mut store = lab.write();
    for day in 0..500 {
        let mut run = MadeUp::on_day(day);
        let is_bad = day % 10 == 0;
        run.figures.exit_status = Some(i32::from(is_bad));
        run.has_facts(day);
        let binding = if is_bad { "lazy" } else { "now" };
        run.figures.facts.insert("binary.binding".into(), binding.into());
        run.has_latency("syscall:read", 1e5);
        run.store(&mut store);
    }
    let grids: Value = serde_json::from_slice(&lab.answer("runs", &["--grid", "--json"])).unwrap();
    assert_eq!(grids[0]["runs"].as_array().unwrap().len(), 500);
    assert_eq!(grids[0]["splits"][0]["what"], "binary.binding = lazy");
    let rule = ["--grid", "--json", "--until", "1970-02-01", "--lost", "p99:syscall:read > 1s"];
    let grids: Value = serde_json::from_slice(&lab.answer("runs", &rule)).unwrap();
    assert_eq!(grids[0]["outcomes"][0], "clean");
    let text = String::from_utf8(lab.answer("runs", &["--grid"])).unwrap();
    assert!(text.contains("450 runs clean, 0 recovered, 50 lost"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let refused = lab.verb("runs").args(["--grid", "--lost", "speed > 2"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is no rule"));
}

#[test]
fn a_series_dates_a_change_and_remembers_that_it_is_known() {
    let lab = Lab::anywhere_beside_others();
    let mut store = lab.write();
    let mut lot = fastrand::Rng::with_seed(4);
    for day in 0..60 {
        let mut run = MadeUp::on_day(day);
        run.labels = vec![("job", "nightly")];
        run.has_facts(day);
        let is_slow = day >= 40;
        run.figures.facts.insert("clock".into(), if is_slow { "hpet" } else { "tsc" }.into());
        run.has_latency("syscall:read", if is_slow { 4e5 } else { 1e5 } * (1.0 + 0.05 * lot.f64()));
        if is_slow {
            run.has_cause("slow-clocksource", 0.3);
        }
        run.store(&mut store);
    }
    let series = |options: &[&str]| -> Value {
        let answer = lab.answer("series", &[&["--json"], options].concat());
        serde_json::from_slice::<Value>(&answer).unwrap()[0].clone()
    };
    let found = series(&[]);
    assert_eq!(found["runs"], 60);
    let changes = found["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{changes:#?}");
    assert_eq!(changes[0]["run"], 41);
    let facts = changes[0]["facts"].as_array().unwrap();
    assert!(
        facts.iter().any(|fact| fact["what"] == "clock" && fact["after"] == "hpet"),
        "{facts:?}"
    );
    let text = String::from_utf8(lab.answer("series", &["--label", "job=nightly"])).unwrap();
    assert!(text.contains("since 1970-02-10 12:00 (run 41)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(series(&["--dismiss", "41"])["changes"].as_array().unwrap().is_empty());
    assert!(series(&[])["changes"].as_array().unwrap().is_empty(), "it is remembered");
    assert_eq!(series(&["--all"])["changes"][0]["dismissed"], true);
    assert_eq!(lab.runs()[40].header.labels["job"], "nightly", "no other label is lost");
    let refused = |options: &[&str]| lab.verb("series").args(options).output().unwrap();
    assert_refused(&refused(&["--dismiss", "999"]), &["999"]);
    assert_refused(&refused(&["--until", "1970-01-04"]), &["3 recorded runs", "no 6"]);
}

#[test]
fn a_recording_has_its_set() {
    let Some(lab) = Lab::beside_others() else { return };
    lab.record(&["--set", "before", "--label", "build=42"], ["true"]);
    let labels = &lab.runs()[0].header.labels;
    assert_eq!((labels["set"].as_str(), labels["build"].as_str()), ("before", "42"));
}
