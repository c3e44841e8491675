//! `whylag prove`: executes programs in pairs, recorded and not, and judges stored runs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Lab, assert_refused, copy_program, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Sleeps for 400 ms, or as long as it is told.
const PROGRAM: [&str; 3] = ["sh", "-c", "sleep ${PAUSE:-0.4}; echo took: ${PAUSE:-0.4} s"];

fn prove(lab: &Lab, options: &[&str]) -> Value {
    let output = lab.verb("prove").arg("--json").args(options).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A recorded run of the tree.
fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let path = folder.join(format!("{name}.whylag"));
    assert!(path.exists(), "{}", path.display());
    path
}

#[test]
fn a_variable_that_helps_is_proven_and_every_run_is_in_the_store() {
    let Some(lab) = Lab::beside_others() else { return };
    let options = ["--fix", "PAUSE=0.05", "--pairs", "6", "--seed", "5"];
    let metric = ["--metric", "took: ([0-9.]+) s", "--"];
    let proof = prove(&lab, &[&options[..], &metric, &PROGRAM].concat());
    let measured = &proof["measured"];
    assert_eq!((&measured["verdict"], &measured["pairs"]), (&"better".into(), &6.into()));
    assert_eq!((measured["before"].as_f64(), measured["after"].as_f64()), (Some(0.4), Some(0.05)));
    assert_eq!(proof["seed"], 5);
    assert_eq!(proof["unrecorded"]["pairs"], 2);
    let trials = proof["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 16);
    for trial in trials {
        let wall_ns = trial["wall_ns"].as_u64().unwrap();
        let least = if trial["side"] == "before" { 400 } else { 50 };
        assert!(wall_ns >= least * 1_000_000, "{} of {least} ms", wall_ns / 1_000_000);
    }
    let runs = lab.runs();
    assert_eq!(runs.len(), 12, "two pairs were not recorded");
    for run in &runs {
        let trial = trials.iter().find(|trial| trial["run"] == run.id.0).unwrap();
        assert_eq!(trial["side"], run.header.labels["side"].as_str());
        assert_eq!(trial["pair"].to_string(), run.header.labels["pair"]);
    }
    let one = &runs[0].header.labels["proof"];
    assert!(runs.iter().all(|run| run.header.labels["proof"] == *one));
    // The same from the store.
    let of_side = |side: &str| -> Vec<String> {
        let of_it = runs.iter().filter(|run| run.header.labels["side"] == side);
        of_it.map(|run| run.id.to_string()).collect()
    };
    let (before, after) = (of_side("before"), of_side("after"));
    let names = before.iter().map(String::as_str).chain(["--"]);
    let names: Vec<&str> = names.chain(after.iter().map(String::as_str)).collect();
    let stored = prove(&lab, &names);
    assert_eq!(stored["measured"]["pairs"], 6);
    for key in ["what", "before", "after", "ratio", "verdict"] {
        assert_eq!(stored["measured"][key], measured[key], "{key}");
    }
    assert!(stored["warnings"][0].as_str().unwrap().contains("not drawn by lot"));
}

#[test]
fn a_change_outside_of_the_program_is_made_and_taken_back() {
    let Some(lab) = Lab::beside_others() else { return };
    let mark = lab.folder.path().join("fixed");
    let (fix, undo) = (format!("touch {}", mark.display()), format!("rm {}", mark.display()));
    let program = format!("test -e {} && echo drops: 0 || echo drops: 7", mark.display());
    let options = ["--fix", &fix, "--undo", &undo, "--pairs", "6", "--metric", "drops: (.*)"];
    let proof = prove(&lab, &[&options[..], &["--", "sh", "-c", &program]].concat());
    let measured = &proof["measured"];
    assert_eq!((measured["before"].as_f64(), measured["after"].as_f64()), (Some(7.0), Some(0.0)));
    assert_eq!(measured["verdict"], "better");
    assert!(!mark.exists(), "the change is taken back at the end");
}

#[test]
fn an_undo_that_does_not_undo_ends_the_proof() {
    let Some(lab) = Lab::beside_others() else { return };
    // What a fact shows: the program that is executed is another file.
    let program = lab.folder.path().join("program");
    let (sleep, echo) = (which("sleep"), which("true"));
    copy_program(&sleep, &program);
    let put = |file: &Path| format!("cp {} {}", file.display(), program.display());
    let prove = |undo: &str, seed: &str| {
        let mut prove = lab.verb("prove");
        prove.args(["--fix", &put(&echo), "--undo", undo, "--pairs", "6", "--json"]);
        prove.args(["--seed", seed, "--"]).arg(&program).arg("0.05").output().unwrap()
    };
    // Whichever side the lot puts first: with 3 it is the one with the change, with 1 the other.
    for seed in ["1", "3"] {
        let output = prove("true", seed);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("--undo did not take back what --fix does"), "{errors}");
        copy_program(&sleep, &program);
    }
    let proof: Value = serde_json::from_slice(&prove(&put(&sleep), "3").stdout).unwrap();
    let warnings = proof["warnings"].to_string();
    assert!(!warnings.contains("no fact of the host"), "{warnings}");
}

/// A change that fails on its way may have done a part of its work by then.
#[test]
fn a_fix_that_fails_half_way_is_taken_back_too() {
    let Some(lab) = Lab::beside_others() else { return };
    let mark = lab.folder.path().join("half");
    let (fix, undo) =
        (format!("touch {0}; false", mark.display()), format!("rm {}", mark.display()));
    let failed = |undo: &str| {
        let mut prove = lab.verb("prove");
        let output = prove.args(["--fix", &fix, "--undo", undo, "--", "true"]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("false' failed"), "{errors}");
        errors
    };
    failed(&undo);
    assert!(!mark.exists(), "a part of the change is still made");
    let errors = failed("false");
    assert!(mark.exists() && errors.contains("the change is still made"), "{errors}");
}

fn which(name: &str) -> PathBuf {
    ["/usr/bin", "/bin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|p| p.exists())
        .unwrap()
}

#[test]
fn a_program_that_never_ends_is_ended_and_judged_by_its_figure() {
    let Some(lab) = Lab::beside_others() else { return };
    let program = "trap 'exit 0' TERM; while :; do echo rate: ${RATE:-3}; sleep 0.05; done";
    let options = ["--fix", "RATE=9", "--time", "300ms", "--pairs", "6", "--higher-is-better"];
    let metric = ["--metric", "rate: ([0-9]+)", "--", "sh", "-c", program];
    let proof = prove(&lab, &[&options[..], &metric].concat());
    let measured = &proof["measured"];
    assert_eq!((measured["before"].as_f64(), measured["after"].as_f64()), (Some(3.0), Some(9.0)));
    assert_eq!(measured["verdict"], "better");
    let refused = lab.verb("prove").args(["--fix", "A=1", "--time", "1s", "--", "true"]).output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--metric"));
}

#[test]
fn the_cause_is_gone_from_recorded_runs_of_a_mystery() {
    let lab = Lab::anywhere_beside_others();
    let (faulty, fixed) = (fixture("mmap-lock-faulty"), fixture("mmap-lock-fixed"));
    let (faulty, fixed) = (faulty.to_str().unwrap(), fixed.to_str().unwrap());
    let sides = |before, after| [vec![before; 6], vec!["--"], vec![after; 6]].concat();
    let proof = prove(&lab, &sides(faulty, fixed));
    let cause = &proof["cause"];
    assert_eq!((&cause["cause"], &cause["verdict"]), (&"mmap-lock".into(), &"gone".into()));
    assert_eq!((cause["before"][0].as_u64(), cause["after"][0].as_u64()), (Some(6), Some(0)));
    let same = prove(&lab, &sides(faulty, faulty));
    assert_eq!(same["cause"]["verdict"], "stays");
    assert!(same["summary"].as_str().unwrap().starts_with("No difference"), "{}", same["summary"]);
    // What is expected decides the exit status.
    let mut expecting = lab.verb("prove");
    let output = expecting.args(["--expect", "better"]).args(sides(faulty, faulty)).output();
    assert_eq!(output.unwrap().status.code(), Some(3));
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line() {
    let lab = Lab::anywhere_beside_others();
    let refused = |options: &[&str], named: &[&str]| {
        assert_refused(&lab.verb("prove").args(options).output().unwrap(), named);
    };
    let faulty = fixture("lazy-binding-faulty");
    let faulty = faulty.to_str().unwrap();
    refused(&[faulty, faulty, "--", faulty], &["2 runs before and 1 after"]);
    refused(&["--fix", "./apply.sh", "--", "true"], &["./apply.sh", "--undo"]);
    refused(&["--fix", "A=1", "--cause", "no-such", "--", "true"], &["no-such"]);
}

#[test]
fn a_program_that_fails_ends_the_proof_and_keeps_the_runs() {
    let Some(lab) = Lab::beside_others() else { return };
    let options = ["--pairs", "6", "--seed", "1"];
    let failing = ["--fix", "FAIL=1", "--", "sh", "-c", "exit ${FAIL:-0}"];
    let output = lab.verb("prove").args([&options[..], &failing].concat()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("failed after the change: exit status 1"), "{errors}");
    assert!(output.stdout.is_empty());
    let no_match = ["--fix", "A=1", "--metric", "p99: (.*)", "--", "echo", "p50: 3"];
    let output = lab.verb("prove").args([&options[..], &no_match].concat()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--metric p99: (.*)"), "{errors}");
}

#[test]
fn ctrl_c_judges_the_pairs_that_are_whole() {
    let Some(lab) = Lab::beside_others() else { return };
    let mark = lab.folder.path().join("fixed");
    let (fix, undo) = (format!("touch {}", mark.display()), format!("rm {}", mark.display()));
    let mut prove = lab.verb("prove");
    prove.args(["--json", "--fix", &fix, "--undo", &undo, "--pairs", "1000", "--"]).args(PROGRAM);
    let child = prove.stdout(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("five runs are stored", || lab.runs_so_far().len() >= 5);
    let asked = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert!(output.status.success(), "{output:?}");
    let proof: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pairs = proof["measured"]["pairs"].as_u64().unwrap();
    assert!((1..=5).contains(&pairs), "{pairs}");
    assert_eq!(proof["measured"]["verdict"], "insufficient");
    assert!(!mark.exists(), "the change is taken back");
    assert!(fs::read_dir(lab.folder.path()).unwrap().count() >= 1);
}

/// Its ticks are late by so many ms.
const TICKS: &str = "read up _ < /proc/uptime; now=${up%.*}${up#*.}0000000; \
     for i in 1 2 3 4 5 6 7 8; do at=$((now + i * 20000000)); \
     echo $at $((at + ${LATE:-9} * 1000000)); done; sleep 0.3";

#[test]
fn ticks_are_judged_by_how_far_they_are_from_their_time_now_and_from_the_store() {
    let Some(lab) = Lab::beside_others() else { return };
    let options = ["--ticks", "--fix", "LATE=3", "--pairs", "6", "--seed", "5"];
    let proof = prove(&lab, &[&options[..], &["--", "sh", "-c", TICKS]].concat());
    let is_right = |proof: &Value| {
        let measured = &proof["measured"];
        assert_eq!((&measured["verdict"], &measured["pairs"]), (&"better".into(), &6.into()));
        assert_eq!(measured["before"].as_f64(), Some(0.009));
        assert_eq!(measured["after"].as_f64(), Some(0.003));
    };
    is_right(&proof);
    assert_eq!(proof["unrecorded"]["after"].as_f64(), Some(0.003));
    assert!(proof["recording"].is_null());
    let runs = lab.runs();
    let is_named = |run: &model::RunSummary| run.header.target.to_string().contains("label");
    assert!(!runs.iter().any(is_named), "what a run is called is no part of what was measured");
    let label = &runs[0].header.labels["proof"];
    let sets = ["before", "after"].map(|side| format!("proof={label},side={side}"));
    is_right(&prove(&lab, &[&sets[0], "--", &sets[1]]));
    // What a recording took is another thing.
    let recording = fixture("mmap-lock-faulty");
    let recording = recording.to_str().unwrap();
    let mixed = [vec![&*sets[0], "--"], vec![recording; 6]].concat();
    assert_refused(&lab.verb("prove").args(mixed).output().unwrap(), &["measured timers"]);
}

#[test]
fn children_are_recorded_where_that_is_asked_for() {
    let Some(lab) = Lab::beside_others() else { return };
    let options = ["--fix", "A=1", "--pairs", "6", "--seed", "5", "--follow"];
    let command = ["--", "sh", "-c", "sleep 0.05 & wait"];
    prove(&lab, &[&options[..], &command].concat());
    let runs = lab.runs();
    assert!(runs.iter().all(|run| run.header.follow), "{runs:#?}");
    // The shell and its child.
    assert!(runs.iter().all(|run| run.threads >= 2), "{runs:#?}");
}
