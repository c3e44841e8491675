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
fn a_recording_has_its_set() {
    let Some(lab) = Lab::beside_others() else { return };
    lab.record(&["--set", "before", "--label", "build=42"], ["true"]);
    let labels = &lab.runs()[0].header.labels;
    assert_eq!((labels["set"].as_str(), labels["build"].as_str()), ("before", "42"));
}
