//! Bad input gets one line that names what is wrong and what to do, and exit status 2.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;

use common::{Lab, assert_refused, whylag};

/// The same for what the option parser says, which adds usage lines.
#[track_caller]
fn assert_wrong_usage(arguments: &[&str], named: &[&str]) {
    let output = whylag().args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert!(named.iter().all(|name| errors.contains(name)), "{named:?} in {errors}");
}

#[test]
fn wrong_options() {
    assert_wrong_usage(&["record"], &["--pid", "--tid", "--all"]);
    assert_wrong_usage(&["record", "-p", "1", "-a"], &["cannot be used with"]);
    assert_wrong_usage(&["record", "-p", "1", "--", "true"], &["cannot be used with"]);
    assert_wrong_usage(&["record", "-p", "0"], &["0"]);
    assert_wrong_usage(&["record", "-a", "--time", "5x"], &["'5x'", "20ms"]);
    assert_wrong_usage(&["record", "-a", "--threshold", "-1"], &["-1"]);
    assert_wrong_usage(&["record", "-a", "--budget", "0"], &["percentage", "2%"]);
    assert_wrong_usage(&["record", "-a", "--budget", "two"], &["percentage"]);
    assert_wrong_usage(&["export", "--format", "pdf"], &["pdf", "svg"]);
}

#[test]
fn targets_that_are_not_there() {
    let lab = Lab::anywhere_beside_others();
    let unused = "4194303"; // the highest pid that Linux can give, and hardly ever does
    assert_refused(&lab.verb("record").args(["-p", unused]).output().unwrap(), &["pid", unused]);
    assert_refused(&lab.verb("record").args(["-t", unused]).output().unwrap(), &["tid", unused]);
    assert!(lab.runs().is_empty());
}

#[test]
fn runs_that_are_not_there() {
    let lab = Lab::anywhere_beside_others();
    let store = lab.store();
    let missing = lab.verb("explain").output().unwrap();
    assert_refused(&missing, &[store.to_str().unwrap(), "nothing recorded"]);
    assert!(!store.exists(), "reading has made a store");
    drop(lab.verb("record").args(["-p", "4194303"]).output().unwrap());
    for verb in ["explain", "show"] {
        assert_refused(&lab.verb(verb).output().unwrap(), &["whylag record"]);
        assert_refused(&lab.verb(verb).arg("7").output().unwrap(), &["7", "whylag runs"]);
    }
    let export = lab.verb("export").args(["7", "--format", "csv"]).output().unwrap();
    assert_refused(&export, &["7", "whylag runs"]);
}

/// Every verb refuses the file by its name and leaves it, and its folder, as they were.
fn assert_left_alone(folder: &Path, content: &[u8], named: &[&str]) {
    let path = folder.join("other.db");
    fs::write(&path, content).unwrap();
    let name = path.to_str().unwrap();
    for verb in [&["record", "--", "true"][..], &["explain"], &["runs"], &["show"]] {
        let output = whylag().args(["--store", name]).args(verb).output().unwrap();
        assert_refused(&output, &[&[name], named].concat());
        assert!(fs::read(&path).unwrap() == content, "{verb:?} has changed the file");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "{verb:?} has left a file");
    }
}

#[test]
fn files_that_are_no_store() {
    let folder = tempfile::tempdir().unwrap();
    assert_left_alone(folder.path(), b"not a database at all, just text\n", &["not a store"]);
}

#[test]
fn a_store_of_a_newer_version() {
    let lab = Lab::anywhere_beside_others();
    drop(lab.verb("record").args(["-p", "4194303"]).output().unwrap());
    let mut content = fs::read(lab.store()).unwrap();
    // The schema version is SQLite's user_version: 4 bytes, big-endian, at offset 60.
    content[60..64].copy_from_slice(&9_999u32.to_be_bytes());
    let folder = tempfile::tempdir().unwrap();
    assert_left_alone(folder.path(), &content, &["newer", "9999"]);
}

#[test]
fn a_damaged_store() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&[], ["true"]));
    let mut content = fs::read(lab.store()).unwrap();
    let half = content.len() / 2;
    content.truncate(half - half % 4096);
    let path = lab.folder.path().join("half.db");
    fs::write(&path, &content).unwrap();
    let name = path.to_str().unwrap();
    let output = whylag().args(["--store", name, "record", "--", "true"]).output().unwrap();
    assert_refused(&output, &[name, "damaged"]);
    assert!(fs::read(&path).unwrap() == content);
}

#[test]
fn a_file_that_cannot_be_written() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&[], ["true"]));
    let mut export = lab.verb("export");
    export.args(["--format", "csv", "-o", "/no/such/folder/x.csv"]);
    assert_refused(&export.output().unwrap(), &["/no/such/folder/x.csv"]);
}
