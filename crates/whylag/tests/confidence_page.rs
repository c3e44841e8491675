//! How often findings are right, by the confidence that was printed, and whether causes that look
//! alike are told apart, over all recorded runs; and docs/confidence.md, which has the tables.
//!
//! The findings are those of the reviewed snapshots beside the runs, which `recorded_runs.rs` holds
//! against what `explain` says now.
//!
//! `WHYLAG_UPDATE_DOCS=1 cargo test -p whylag --test confidence_page` writes the page's tables anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use explain::catalogue::ALL;

/// Bins of confidence: from, to.
const BINS: [(f64, f64); 4] = [(0.0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)];

/// Neither is a fault: what is read for the first time comes from the disk.
const COLD: &str = "the files were not in memory";
/// The journal is the fault; the disk's own answer stays when it is gone.
const SYNCED: &str = "the ring is made durable with fdatasync (program.c)";
const BUSY_THREADS: &str = "its 8 threads compute for 350 us of each 2 ms, on 2 CPUs";
const REALTIME: &str = "a thread of it computes at real-time priority on the CPU of the others";

/// Causes that programs have beside their fault: run, cause, and how that is known.
const COMPANIONS: [(&str, &str, &str); 20] = [
    ("core-dump-faulty", "first-touch", "each worker fills 96 MiB of new memory (README)"),
    ("core-dump-fixed", "first-touch", "each worker fills 96 MiB of new memory (README)"),
    ("file-lock-faulty", "cpu-runqueue", BUSY_THREADS),
    ("file-lock-fixed", "cpu-runqueue", BUSY_THREADS),
    ("futex-convoy-faulty", "cpu-runqueue", BUSY_THREADS),
    ("futex-convoy-fixed", "cpu-runqueue", BUSY_THREADS),
    ("yield-spin-fixed", "cpu-runqueue", BUSY_THREADS),
    ("fsync-journal-faulty", "disk-sync", SYNCED),
    ("fsync-journal-fixed", "disk-sync", SYNCED),
    ("healthy-compiler", "disk-read", COLD),
    ("healthy-find", "disk-read", COLD),
    ("lazy-binding-faulty", "udp-rcvbuf-stall", "the stalls make it lose datagrams (README)"),
    ("memcg-reclaim-faulty", "malloc-trim", "each request gives its buffer back (program.c)"),
    ("memcg-reclaim-fixed", "malloc-trim", "each request gives its buffer back (program.c)"),
    (
        "mmap-file-write-faulty",
        "cpu-runqueue",
        "README: waits for a CPU are taken out of its truth",
    ),
    ("mmap-lock-faulty", "cpu-runqueue", "16 threads compute on 2 CPUs"),
    ("mmap-lock-fixed", "cpu-runqueue", "16 threads compute on 2 CPUs"),
    ("priority-inversion-faulty", "rt-starvation", REALTIME),
    ("priority-inversion-fixed", "rt-starvation", REALTIME),
    (
        "stopped-or-traced-fixed",
        "cpu-runqueue",
        "README: the agent takes CPU time from the workers",
    ),
];

struct Finding {
    run: String,
    cause: String,
    confidence: f64,
}

impl Finding {
    fn is_right(&self) -> bool {
        self.run.strip_suffix("-faulty") == Some(self.cause.as_str())
            || COMPANIONS.iter().any(|(run, cause, _)| *run == self.run && *cause == self.cause)
    }
}

fn findings() -> Vec<Finding> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "snap"));
    paths.sort();
    let mut findings = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let (_, json) = text.split_once("--json:\n").unwrap();
        for line in json.lines() {
            let (cause, confidence) = line.split_once(" lost_ns ").unwrap();
            findings.push(Finding {
                run: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                cause: cause.trim_matches('"').to_owned(),
                confidence: confidence.rsplit(' ').next().unwrap().parse().unwrap(),
            });
        }
    }
    findings
}

/// Two causes that look alike, of each of which there is a recorded run.
struct Pair {
    one: &'static str,
    other: &'static str,
}

impl Pair {
    /// What the run of `fault` is called first, and with `mistaken` among its findings, that.
    fn called(findings: &[Finding], fault: &str, mistaken: &str) -> String {
        let run = format!("{fault}-faulty");
        let of_run = || findings.iter().filter(|one| one.run == run);
        let first = of_run().next().map_or("nothing", |one| &one.cause);
        let wrongly = |one: &&Finding| one.cause == mistaken && !one.is_right();
        match of_run().find(wrongly) {
            Some(one) => format!("{first}, also {} ({:.2})", one.cause, one.confidence),
            None => first.to_owned(),
        }
    }

    fn are_told_apart(&self, findings: &[Finding]) -> bool {
        Pair::called(findings, self.one, self.other) == self.one
            && Pair::called(findings, self.other, self.one) == self.other
    }
}

/// All pairs of the catalogue, with and without recorded runs of both.
fn pairs() -> (Vec<Pair>, Vec<Pair>) {
    let all = ALL.iter().flat_map(|cause| {
        let others = cause.look_alikes.iter();
        others.map(|pair| Pair { one: cause.id.as_str(), other: pair.cause.as_str() })
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let is_recorded = |cause: &str| folder.join(format!("{cause}-faulty.snap")).is_file();
    all.partition(|pair| is_recorded(pair.one) && is_recorded(pair.other))
}

/// Findings of a bin, and how many of them are right.
fn counted(findings: &[Finding], (from, to): (f64, f64)) -> (usize, usize) {
    let of_bin = findings.iter().filter(|one| (from..to).contains(&one.confidence));
    (of_bin.clone().count(), of_bin.filter(|one| one.is_right()).count())
}

fn tables(findings: &[Finding]) -> Vec<String> {
    let mut bins =
        "| confidence | findings | right | share right |\n|---|---|---|---|\n".to_owned();
    for (from, to) in BINS {
        let (all, right) = counted(findings, (from, to));
        let part = match all {
            0 => "-".to_owned(),
            _ => format!("{:.0} %", 100.0 * right as f64 / all as f64),
        };
        let name =
            if to > 1.0 { format!("{from} and more") } else { format!("{from} to below {to}") };
        writeln!(bins, "| {name} | {all} | {right} | {part} |").unwrap();
    }
    let mut wrong = "| run | finding | confidence |\n|---|---|---|\n".to_owned();
    for one in findings.iter().filter(|one| !one.is_right()) {
        writeln!(wrong, "| {} | {} | {:.2} |", one.run, one.cause, one.confidence).unwrap();
    }
    let mut companions = "| run | cause | known from |\n|---|---|---|\n".to_owned();
    for (run, cause, because) in COMPANIONS {
        writeln!(companions, "| {run} | {cause} | {because} |").unwrap();
    }
    vec![bins, wrong, companions, table_of_pairs(findings)]
}

fn table_of_pairs(findings: &[Finding]) -> String {
    let mut table =
        "| one | its run is called | the other | its run is called |\n|---|---|---|---|\n"
            .to_owned();
    let (recorded, others) = pairs();
    for Pair { one, other } in recorded {
        let (of_one, of_other) =
            (Pair::called(findings, one, other), Pair::called(findings, other, one));
        writeln!(table, "| {one} | {of_one} | {other} | {of_other} |").unwrap();
    }
    for Pair { one, other } in others {
        writeln!(table, "| {one} | - | {other} | - |").unwrap();
    }
    table
}

/// The page with these tables in place of its own; its other text stays.
fn with_tables(page: &str, tables: Vec<String>) -> String {
    let mut written = String::new();
    let mut left = tables.into_iter();
    for line in page.lines().filter(|line| !line.starts_with('|')) {
        writeln!(written, "{line}").unwrap();
        if line == "<!-- generated -->" {
            written += &left.next().expect("a table for each mark");
        }
    }
    assert_eq!(left.next(), None, "a mark for each table");
    written
}

#[test]
fn what_is_printed_as_sure_is_right_nine_times_in_ten() {
    let (all, right) = counted(&findings(), (0.9, 1.01));
    assert!(all >= 40, "only {all} findings");
    assert!(right * 10 >= all * 9, "{right} of {all} are right");
}

#[test]
fn causes_that_look_alike_are_told_apart_in_the_runs_of_both() {
    let findings = findings();
    let (recorded, others) = pairs();
    assert!(recorded.len() > 55 && others.len() < 12, "{} {}", recorded.len(), others.len());
    let mistaken = recorded.iter().filter(|pair| !pair.are_told_apart(&findings));
    let mistaken: Vec<_> = mistaken.map(|pair| format!("{} {}", pair.one, pair.other)).collect();
    assert_eq!(mistaken, Vec::<String>::new());
}

#[test]
fn a_companion_is_a_finding_that_is_there() {
    let findings = findings();
    let is_there = |run, cause| findings.iter().any(|one| one.run == run && one.cause == cause);
    let gone = COMPANIONS.iter().filter(|(run, cause, _)| !is_there(*run, *cause));
    assert_eq!(gone.collect::<Vec<_>>(), Vec::<&(&str, &str, &str)>::new());
}

#[test]
fn the_page_has_these_figures() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/confidence.md");
    let page = fs::read_to_string(&path).unwrap();
    let now = with_tables(&page, tables(&findings()));
    if std::env::var_os("WHYLAG_UPDATE_DOCS").is_some() {
        fs::write(&path, now).unwrap();
        return;
    }
    for (is, should) in page.lines().zip(now.lines()) {
        assert_eq!(is, should, "docs/confidence.md; WHYLAG_UPDATE_DOCS=1 writes it anew");
    }
    assert_eq!(page, now);
}
