//! Runs that travel as files: every verb takes one in place of a number.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;

use common::{Lab, assert_refused, whylag};

/// A lab with a run of benchmarks, which needs no privilege, and that run as a file.
fn measured() -> (Lab, String) {
    let lab = Lab::anywhere_beside_others();
    lab.answer("bench", &["getppid", "--processes", "1", "--time", "100ms"]);
    let file = lab.folder.path().join("x.whylag").to_str().unwrap().to_owned();
    lab.answer("export", &["--format", "run", "-o", &file]);
    (lab, file)
}

#[test]
fn a_verb_says_the_same_of_the_file_as_of_the_run() {
    let (lab, file) = measured();
    for (verb, options) in
        [("show", &["--json"][..]), ("show", &[]), ("export", &["--format", "csv"])]
    {
        let of_run = lab.answer(verb, &[&["1"], options].concat());
        let elsewhere = whylag().args(["--store", "/no/store", verb, &file]).args(options).output();
        assert_eq!(of_run, elsewhere.unwrap().stdout, "{verb}");
    }
    let piped = lab.answer("export", &["1", "--format", "run"]);
    assert!(piped == fs::read(&file).unwrap(), "what goes to a pipe is the same");

    let compared = String::from_utf8(lab.answer("compare", &[&file, "1"])).unwrap();
    assert!(compared.starts_with(&format!("Run 1 here is {file}, run 2 is 1.\n")), "{compared}");
    let diff = String::from_utf8(lab.answer("doctor", &["--diff", "1", &file])).unwrap();
    assert!(diff.contains("run 1"), "{diff}");
}

#[test]
fn an_imported_run_is_one_of_the_store() {
    let (lab, file) = measured();
    let printed = String::from_utf8(lab.answer("import", &[&file])).unwrap();
    assert!(printed.starts_with("Run 2 is stored: 'whylag explain 2'"), "{printed}");
    let runs = lab.runs();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1].header, runs[0].header);
    assert_eq!(runs[1].status, model::RunStatus::Complete);
    assert_eq!(
        lab.answer("export", &["1", "--format", "csv"]),
        lab.answer("export", &["2", "--format", "csv"])
    );
}

#[test]
fn imported_recordings_are_in_grids_and_series() {
    let lab = Lab::anywhere_beside_others();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mmap-lock-faulty.whylag");
    for _ in 0..6 {
        lab.answer("import", &[file]);
    }
    let grid: serde_json::Value =
        serde_json::from_slice(&lab.answer("runs", &["--grid", "--json"])).unwrap();
    assert_eq!(grid[0]["runs"], serde_json::json!([1, 2, 3, 4, 5, 6]));
    let cause = "cause mmap-lock";
    assert!(grid[0]["rows"].as_array().unwrap().iter().any(|row| row["name"] == cause), "{grid}");
    let series: serde_json::Value =
        serde_json::from_slice(&lab.answer("series", &["--json"])).unwrap();
    assert_eq!(
        (&series[0]["runs"], series[0]["changes"].as_array().unwrap().len()),
        (&6.into(), 0)
    );
}

#[test]
fn what_is_no_run_is_refused_in_a_line() {
    let (lab, file) = measured();
    let half = lab.folder.path().join("half.whylag");
    let content = fs::read(&file).unwrap();
    fs::write(&half, &content[..content.len() / 2]).unwrap();
    let half = half.to_str().unwrap();
    let store = lab.store();
    let store = store.to_str().unwrap();
    for (name, named) in [
        ("seven", ["seven", "'whylag runs'", "'whylag export --format run'"]),
        (half, [half, "damaged", "cut short"]),
        (store, [store, "not a run of whylag", "--store"]),
        ("/dev/zero", ["/dev/zero", "not a run of whylag", "no regular file"]),
    ] {
        for arguments in
            [&["explain"][..], &["show"], &["compare", "1"], &["export", "--format", "csv"]]
        {
            let output = lab.verb(arguments[0]).args(&arguments[1..]).arg(name).output().unwrap();
            assert_refused(&output, &named);
        }
        if name != "seven" {
            assert_refused(&lab.verb("import").arg(name).output().unwrap(), &named);
        }
    }
    assert_eq!(lab.runs().len(), 1);
}

#[test]
fn an_export_writes_over_no_store_and_leaves_nothing_half_written() {
    let (lab, file) = measured();
    let store = lab.store();
    for format in ["run", "csv"] {
        let mut export = lab.verb("export");
        export.args(["--format", format, "-o"]).arg(&store);
        assert_refused(&export.output().unwrap(), &["is the store itself", "-o"]);
    }
    assert_eq!(lab.runs().len(), 1);

    let before = fs::read(&file).unwrap();
    let missing = lab.verb("export").args(["77", "--format", "run", "-o", &file]).output().unwrap();
    assert_refused(&missing, &["77", "whylag runs"]);
    assert!(fs::read(&file).unwrap() == before, "what was there stays when nothing can be written");
    let nowhere = ["--format", "run", "-o", "/no/such/folder/x.whylag"];
    let nowhere = lab.verb("export").args(nowhere).output().unwrap();
    assert_refused(&nowhere, &["/no/such/folder/x.whylag"]);
    lab.answer("export", &["--format", "run", "-o", "/dev/null"]);
    assert!(!Path::new("/dev/null").is_file());
    let left = fs::read_dir(lab.folder.path()).unwrap();
    let left = left.filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".whylag")
    });
    assert_eq!(left.count(), 0);
}
