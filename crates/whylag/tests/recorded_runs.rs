//! What `explain` says of recorded runs: each mystery with its fault and with its fix, and healthy
//! programs. The runs are kept in tests/fixtures, so this needs no root and no kernel, and is the
//! same everywhere.
//!
//! Beside each run NAME.whylag lies NAME.snap: the text that `whylag explain` prints, and the
//! figures of the findings in `--json`. Whoever changes what is found, a figure or a wording sees
//! it here as a difference. To accept it:
//!
//!     INSTA_UPDATE=always cargo test -p whylag --test recorded_runs
//!     git diff crates/whylag/tests/fixtures
//!
//! and read every line of that difference before it is committed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use explain::{PartialRun, Question};
use model::Account;
use report::Style;
use store::{Sqlite, Store};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Names of the files with this extension.
fn names(extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// No colour, and a width that does not depend on who runs the test.
const STYLE: Style = Style { color: false, width: 100 };

/// What `whylag explain FILE` and `whylag explain FILE --json` say, as their verb puts it together.
fn explained(name: &str) -> String {
    let path = folder().join(name).with_extension("whylag");
    let (store, id) = Sqlite::open_run_file(&path).unwrap();
    let run = store.load(id).unwrap();
    let mut text = Vec::new();
    let answer = match explain::timers(&run) {
        Some(judged) => {
            report::jitter::write_findings(&mut text, &judged.jitter, &STYLE).unwrap();
            judged.explanation
        }
        None => {
            let answer = explain::explain(&run);
            report::explanation::write(&mut text, &answer, &run, &STYLE).unwrap();
            answer
        }
    };
    let mut text = String::from_utf8(text).unwrap();
    text += "\n--json:\n";
    let found = report::json::explanation(&answer, &run, None);
    for finding in found["findings"].as_array().unwrap() {
        let [cause, lost_ns, share, confidence] =
            ["cause", "lost_ns", "share", "confidence"].map(|key| &finding[key]);
        writeln!(text, "{cause} lost_ns {lost_ns} share {share} confidence {confidence}").unwrap();
    }
    text
}

/// What is said of all these, found out on all CPUs.
fn all_explained(names: &BTreeSet<String>) -> Vec<(String, String)> {
    let left = Mutex::new(names.iter());
    let made = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(name) = left.lock().unwrap().next() else { return };
                    let answer = explained(name);
                    made.lock().unwrap().push((name.clone(), answer));
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap();
    made.sort();
    made
}

#[test]
fn explain_says_of_each_recorded_run_what_was_reviewed() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut changed = Vec::new();
    for (name, answer) in all_explained(&names("whylag")) {
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), answer));
        if catch_unwind(AssertUnwindSafe(compare)).is_err() {
            changed.push(name);
        }
    }
    assert!(changed.is_empty(), "{} of the runs differ: {}", changed.len(), changed.join(", "));
}

/// A program whose samples could not be recorded: its cause is not seen, and nothing that needs
/// samples is said not to be there, in the text as in the JSON.
#[test]
fn what_a_part_that_was_off_would_have_shown_is_not_looked_at() {
    let (store, id) = Sqlite::open_run_file(&folder().join("fork-cow-faulty.whylag")).unwrap();
    let mut run = store.load(id).unwrap();
    run.sums.paths.retain(|path| !path.sampled);
    let samples = model::RecorderPart::Samples;
    run.capabilities.retain(|capability| capability.part != samples);
    let because = "perf_event_paranoid is 3".to_owned();
    run.capabilities.push(model::Capability { part: samples, on: false, because });
    let answer = explain::explain(&run);

    let mut text = Vec::new();
    report::explanation::write(&mut text, &answer, &run, &STYLE).unwrap();
    let text = String::from_utf8(text).unwrap();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "Not looked at part 'on-CPU samples' was off (perf_event_paranoid is 3): ";
    let (_, listed) = flat.split_once(said).unwrap_or_else(|| panic!("{text}"));
    let json = report::json::explanation(&answer, &run, None);
    let group = &json["not_looked_at"][0];
    assert_eq!(group["because"], "part 'on-CPU samples' was off (perf_event_paranoid is 3)");
    let causes: Vec<&str> =
        group["causes"].as_array().unwrap().iter().map(|cause| cause.as_str().unwrap()).collect();
    for cause in ["fork-cow", "first-touch", "tlb-shootdown"] {
        assert!(listed.contains(cause) && causes.contains(&cause), "{cause}: {text}");
        assert!(!flat.contains(&format!("not {cause}: ")), "{text}");
        let why_not = explain::why_not(&run, cause).unwrap();
        let mut json = Vec::new();
        report::json::write_why_not(&mut json, &why_not).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["standing"]["verdict"], "not_looked_for");
        assert_eq!(json["standing"]["because"], group["because"]);
    }
}

/// Asked about some moments, or about one delay, as about the whole run.
#[test]
fn a_part_of_a_run_has_causes_of_the_cpu_too() {
    for cause in ["cpu-runqueue", "cgroup-throttle"] {
        let path = folder().join(format!("{cause}-faulty.whylag"));
        let (store, id) = Sqlite::open_run_file(&path).unwrap();
        let run = store.load(id).unwrap();
        let queued = |outlier: &model::Outlier| {
            outlier.breakdown.sum_of(|a| a.is_waiting_for_cpu() || a == Account::Throttled)
        };
        let longest = (0..run.outliers.len()).max_by_key(|at| queued(&run.outliers[*at])).unwrap();
        let middle = run.length_ns() / 2;
        for question in [
            Question::Outlier(longest + 1),
            Question::Window(middle - 200_000_000, middle + 200_000_000),
        ] {
            let answer = explain::explain_part(&PartialRun::new(&run, &question).unwrap());
            let found: Vec<&str> = answer.findings.iter().map(|f| f.cause.as_str()).collect();
            assert_eq!(found.first(), Some(&cause), "{question:?}: {found:?}");
            assert!(answer.findings[0].lost_ns > answer.lost_ns / 2, "{question:?}");
        }
    }
}

#[test]
fn every_snapshot_has_its_run() {
    let left: Vec<_> = names("snap").difference(&names("whylag")).cloned().collect();
    assert!(left.is_empty(), "no run for {left:?}");
    assert!(names("whylag").len() > 100);
}
