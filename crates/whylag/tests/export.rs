//! What a run looks like in other formats, and that all of them tell the same.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::Lab;
use common::programs::mystery;

#[test]
fn every_format_tells_of_the_same_run() {
    let Some(lab) = Lab::new() else { return };
    let faulty = mystery("mmap-lock-faulty");
    drop(lab.record(&[], [faulty.as_os_str(), "1".as_ref()]));
    let run = lab.run();

    let folded = String::from_utf8(lab.answer("export", &["--format", "folded"])).unwrap();
    let mut sum_us = 0;
    for line in folded.lines() {
        let (stack, us) = line.rsplit_once(' ').unwrap();
        sum_us += us.parse::<u64>().unwrap();
        assert!(stack.starts_with("mmap-lock-fault"), "{line}");
    }
    let in_run: u64 = run.sums.stack_sums.iter().map(|sum| sum.ns).sum();
    assert!(sum_us.abs_diff(in_run / 1000) <= folded.lines().count() as u64);
    // The story's picture: asleep in the slow path of the lock, called from mmap.
    let slow =
        |line: &&str| line.contains("mmap;") && line.contains("rwsem_down_write_slowpath_[k]");
    assert!(folded.lines().any(|line| slow(&line)), "{folded}");
    assert!(folded.contains("worker_main;run_queries;"), "{folded}");

    let svg = String::from_utf8(lab.answer("export", &["--format", "svg"])).unwrap();
    assert!(svg.trim_start().starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("rwsem_down_write_slowpath") && svg.contains("search"));

    let csv = String::from_utf8(lab.answer("export", &["--format", "csv"])).unwrap();
    let mut lines = csv.lines();
    let header: Vec<_> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let (metric, count) = (column("metric"), column("count"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let mmaps: u64 = rows
        .iter()
        .filter(|row| row[metric] == "syscall:mmap")
        .map(|row| row[count].parse::<u64>().unwrap())
        .sum();
    let in_run: u64 = run
        .seconds
        .iter()
        .filter(|second| second.metric.to_string() == "syscall:mmap")
        .map(|second| second.histogram.count())
        .sum();
    assert!(mmaps > 1000 && mmaps == in_run, "{mmaps} and {in_run}");
}

#[test]
fn explain_as_json_has_its_fixed_keys() {
    let Some(lab) = Lab::new() else { return };
    let faulty = mystery("mmap-lock-faulty");
    drop(lab.record(&[], [faulty.as_os_str(), "1".as_ref()]));
    let answer = lab.explain();
    let (wall, run) = (answer["wall_ns"].as_u64().unwrap(), lab.run());
    assert_eq!(wall, run.wall_ns());
    assert_eq!(answer["run"], run.id.0);
    assert!(answer["unaccounted_ns"].is_u64());
    let accounts = answer["accounts"].as_array().unwrap();
    let sum: u64 = accounts.iter().map(|account| account["ns"].as_u64().unwrap()).sum();
    assert_eq!(sum, wall);
    for key in ["cause", "fix", "reproduce", "verify"] {
        assert!(answer["findings"][0][key].is_string(), "{key}");
    }
    for key in ["chain", "evidence", "ruled_out"] {
        assert!(!answer["findings"][0][key].as_array().unwrap().is_empty(), "{key}");
    }
    assert!(answer["findings"][0]["excluded"].is_array());
    assert_eq!(answer["schema"], 2);
    for key in ["share", "confidence"] {
        let value = answer["findings"][0][key].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&value), "{key}: {value}");
    }
    assert!(answer["losses"].is_object());
    for key in ["cpu_ns", "bpf_ns", "bpf_runs", "events"] {
        assert!(answer["cost"][key].as_u64().unwrap() > 0, "{key}");
    }
}
