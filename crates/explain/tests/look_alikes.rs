//! No look-alike is written that no run could print.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use explain::catalogue::ALL;
use explain::cause::{Cause, Id};

/// The source of a cause without its tests.
fn source(cause: &Cause) -> String {
    let causes = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/causes");
    let name = format!("{}.rs", cause.id.as_str().replace('-', "_"));
    let groups = fs::read_dir(causes).unwrap().map(|entry| entry.unwrap().path());
    let file = groups.map(|group| group.join(&name)).find(|path| path.is_file()).unwrap();
    fs::read_to_string(file).unwrap().split("#[cfg(test)]").next().unwrap().to_owned()
}

/// Every claim of the cause excludes the other by a datum of its own: a statement of a function's
/// body, under no condition.
fn always_excludes(cause: &Cause, other: Id) -> bool {
    let name = format!("ids::{}", other.as_str().replace('-', "_").to_uppercase());
    let source = source(cause);
    let statements = source.split("\n    claim.rule_out(").skip(1);
    statements.map(str::trim_start).any(|arguments| arguments.starts_with(&format!("{name},")))
}

#[test]
fn every_pair_can_stay_open_in_some_run() {
    let mut pairs = 0;
    for cause in ALL {
        for pair in cause.look_alikes {
            let other = ALL.iter().find(|other| other.id == pair.cause).unwrap();
            let from_here = !always_excludes(cause, other.id);
            let from_there = pair.mutual && !always_excludes(other, cause.id);
            assert!(from_here || from_there, "{} and {}: never printed", cause.id, other.id);
            pairs += 1;
        }
    }
    assert!(pairs > 40, "{pairs}");
}

#[test]
fn an_exclusion_under_no_condition_is_seen() {
    let known = |name: &str| ALL.iter().find(|cause| cause.id.as_str() == name).unwrap();
    assert!(always_excludes(known("mmap-lock"), known("cpu-runqueue").id));
    assert!(!always_excludes(known("rt-starvation"), known("cpu-runqueue").id));
}
