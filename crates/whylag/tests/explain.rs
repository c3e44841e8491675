//! `whylag explain` of a part of a run, of one cause, and of time that has no cause.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::clocks::for_cpu;
use common::disturbance::disturbance;
use common::programs::{mystery, program};
use common::{Lab, assert_refused, whylag};
use model::{Account, Accounts, Blocked, OutlierKind, Run};
use serde_json::Value;

const WRITE: Account = Account::Blocked(Blocked::MmapLockWrite);

fn explained(lab: &Lab, options: &[&str]) -> Value {
    let options = [&["--json"], options].concat();
    serde_json::from_slice(&lab.answer("explain", &options)).unwrap()
}

/// The accounts of an answer: they sum to its wall time.
fn accounts(answer: &Value) -> Accounts {
    let accounts: Accounts = answer["accounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["account"].as_str().unwrap().parse().unwrap(), row["ns"].as_u64().unwrap()))
        .collect();
    assert_eq!(accounts.total(), answer["wall_ns"].as_u64().unwrap());
    accounts
}

fn first_cause(answer: &Value) -> &str {
    answer["findings"][0]["cause"].as_str().unwrap_or("none")
}

/// Every line fits, but for commands that are not broken.
fn assert_fits(lab: &Lab, options: &[&str]) -> String {
    let text = String::from_utf8(lab.answer("explain", options)).unwrap();
    for line in text.lines() {
        let is_command = line.trim_start().starts_with("verify");
        assert!(is_command || line.chars().count() <= 80, "{line}");
    }
    text
}

/// The number of the longest call that mostly waited to change its address space.
fn slow_call(run: &Run) -> usize {
    let slow = run.outliers.iter().position(|o| {
        o.kind == OutlierKind::Syscall && o.breakdown.get(WRITE) > o.duration_ns * 3 / 4
    });
    slow.unwrap() + 1
}

#[test]
fn an_outlier_a_window_and_a_thread_have_their_own_cause() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [mystery("mmap-lock-faulty").to_str().unwrap(), "1", "16"]);
    let run = recorded.run;

    let number = slow_call(&run);
    let outlier = &run.outliers[number - 1];
    let answer = explained(&lab, &["--outlier", &number.to_string()]);
    assert_eq!(first_cause(&answer), "mmap-lock", "{outlier:?} {answer:#}");
    let wall = answer["wall_ns"].as_u64().unwrap();
    assert!(wall.abs_diff(outlier.duration_ns) < 1_000, "{wall} of {outlier:?}");
    assert_eq!(answer["scope"]["threads"], 1);
    let said = accounts(&answer).get(WRITE);
    assert!(said.abs_diff(outlier.breakdown.get(WRITE)) < 1_000, "{said} of {outlier:?}");
    let text = assert_fits(&lab, &["--outlier", &number.to_string()]);
    assert!(text.contains("(mmap-lock)") && text.contains("Based on "), "{text}");

    // Where other programs take the CPUs, waiting for one may come first.
    let disturbed = disturbance(&run);
    let assert_named = |answer: &Value| {
        let mut findings = answer["findings"].as_array().unwrap().iter();
        assert!(findings.any(|finding| finding["cause"] == "mmap-lock"), "{answer:#}");
        match &disturbed {
            None => assert_eq!(first_cause(answer), "mmap-lock", "{answer:#}"),
            Some(by) => println!("not judged: mmap-lock comes first: disturbed by {by}"),
        }
    };
    let answer = explained(&lab, &["--window", "400..600ms"]);
    assert_named(&answer);
    assert_eq!(answer["scope"]["from_ns"], 400_000_000);
    let known = accounts(&answer);
    let (from, to) = (run.header.started_ns + 400_000_000, run.header.started_ns + 600_000_000);
    let alive = run.threads.iter().map(|t| t.last_ns.min(to).saturating_sub(t.first_ns.max(from)));
    assert_eq!(known.total(), alive.sum::<u64>());
    // 16 threads queue for one lock: most of their time is in intervals of a millisecond or more.
    assert!(known.get(WRITE) > known.total() / 4, "{known:?}");
    let shares = answer["findings"].as_array().unwrap().iter();
    let shares: f64 = shares.map(|finding| finding["share"].as_f64().unwrap()).sum();
    assert!(shares <= 1.0 + 1e-9);
    assert_fits(&lab, &["--window", "0.4..0.6s"]);

    let thread = run.threads.iter().max_by_key(|t| t.accounts.get(WRITE)).unwrap();
    let answer = explained(&lab, &["--thread", &thread.tid.to_string()]);
    assert_named(&answer);
    assert_eq!(accounts(&answer), thread.accounts);
    assert_fits(&lab, &["--thread", &thread.tid.to_string()]);

    // And one cause by its name, in the run and in a part of it.
    let standing = |options: &[&str]| explained(&lab, options)["standing"].clone();
    let whole = standing(&["--why-not", "mmap-lock"]);
    assert!(whole["rank"] == 1 || disturbed.is_some(), "{whole:#}");
    assert_eq!(whole["verdict"], "finding");
    let absent = standing(&["--why-not", "blocked-log-pipe"]);
    assert_eq!(absent["verdict"], "absent");
    assert_eq!(absent["missing"], "no thread waited for room in a pipe");
    let part = ["--why-not", "mmap-lock", "--outlier", &number.to_string()];
    assert_eq!(standing(&part)["verdict"], "finding");
    let text = assert_fits(&lab, &["--why-not", "blocked-log-pipe"]);
    assert!(text.starts_with("blocked-log-pipe is not claimed in run 1."), "{text}");
    refusals(&lab, &run);
}

/// What cannot be explained is refused in one line that says what is there.
fn refusals(lab: &Lab, run: &Run) {
    let length = model::units::duration(run.length_ns());
    let numbered = format!("the longest {} are numbered", model::units::count(2_000));
    let threads = format!("its {} threads", run.threads.len());
    let outliers = if run.outlier_count > 2_000 {
        numbered
    } else {
        format!("it has {}", model::units::count(run.outlier_count))
    };
    for (options, named) in [
        (&["--why-not", "mmap"][..], &["'mmap'", "mmap-lock", "futex-convoy"][..]),
        (&["--outlier", "999999"], &["no outlier 999999", &outliers]),
        (&["--window", "100..101s"], &["outside run 1", &length]),
        (&["--window", "0.5..0.4s"], &["500 ms..400 ms", "earlier time first", &length]),
        (&["--thread", "4194303"], &["no thread 4194303", "whylag show 1", &threads]),
        (&["--outlier", "1", "--thread", "1"], &["exclude each other"]),
        (&["--window", "0..1s", "--outlier", "1"], &["exclude each other"]),
    ] {
        assert_refused(&lab.verb("explain").args(options).output().unwrap(), named);
    }
    for (option, value) in [("--outlier", "0"), ("--window", "1s"), ("--window", "1..x")] {
        let output = lab.verb("explain").args([option, value]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("'{value}'")));
    }
}

/// The reader is a child, of which nothing but its name is known.
#[test]
fn who_reads_too_slowly_is_named_though_it_is_not_recorded() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("slow_peer")]);
    let wrote = recorded.stdout().trim().strip_prefix("wrote=").unwrap().parse::<u64>().unwrap();
    let answer = lab.explain();
    let mut findings = answer["findings"].as_array().unwrap().iter();
    let found = findings.find(|finding| finding["cause"] == "blocked-log-pipe");
    let found = found.unwrap_or_else(|| panic!("{answer:#}"));
    let lost = found["lost_ns"].as_u64().unwrap();
    assert!(lost > wrote / 2 && lost <= wrote, "{lost} of {wrote}");
    let title = found["title"].as_str().unwrap();
    let reader = recorded.run.sums.waits.iter().find(|wait| wait.waker_comm == "slow_peer");
    let reader = reader.unwrap().waker_tgid;
    assert!(recorded.run.threads.iter().all(|thread| thread.tgid != reader));
    let named = format!("waits for slow_peer (pid {reader}), which is not recorded, to read");
    assert!(title.contains(&named), "{title}");
}

#[test]
fn lost_time_without_a_cause_is_shown_with_its_stacks() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("tty_lock")]);
    let wrote = recorded.stdout().trim().strip_prefix("wrote=").unwrap().parse::<u64>().unwrap();
    let answer = lab.explain();
    // Where other programs take the CPUs, waiting for one may be a finding.
    let disturbed = disturbance(&recorded.run);
    match &disturbed {
        None => assert_eq!(first_cause(&answer), "none", "{answer:#}"),
        Some(by) => println!("not judged: lost time without a cause has none: disturbed by {by}"),
    }
    let largest = &answer["unexplained"][0];
    assert_eq!(largest["account"], "blocked:lock:mutex", "{answer:#}");
    let lost = largest["ns"].as_u64().unwrap();
    // The program's figure has getting a CPU in it.
    let queued: u64 = recorded.run.threads.iter().map(|thread| for_cpu(&thread.accounts)).sum();
    let least = (wrote * 9 / 10).saturating_sub(queued).max(wrote / 2);
    assert!(wrote > 250_000_000 && lost > least && lost <= wrote, "{lost} of {wrote}");
    let stack = &answer["unexplained_stacks"][0];
    let frames = |side: &str| stack[side].as_array().unwrap().iter().map(Value::to_string);
    assert!(frames("kernel").any(|frame| frame.contains("tty_write")), "{stack:#}");
    // The C library has no frame pointers: the caller of write() itself is not seen.
    assert!(frames("user").any(|frame| frame.contains("main")), "{stack:#}");
    let text = assert_fits(&lab, &[]);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = flat.split(" Run ").next().unwrap();
    let has_no_cause = first.contains("of the wall time waiting for a kernel mutex in write")
        && first.contains("explains it");
    assert!(has_no_cause || disturbed.is_some(), "{text}");
    assert!(text.contains("innermost function first:") && text.contains("tty_write"), "{text}");
}

/// The command in the text is taken as a user would, with the file in place of RUN.
#[test]
fn the_command_for_the_slowest_request_explains_that_one() {
    let file = "tests/fixtures/queueing-faulty.whylag";
    let says = |options: &[&str]| {
        let output = whylag().arg("explain").args(options).output().unwrap();
        assert!(output.status.success(), "{options:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = says(&[file]);
    let at = text.lines().position(|line| line.starts_with("slow: ")).unwrap();
    let (_, took) = text.lines().nth(at).unwrap().split_once(" took ").unwrap();
    let (took, _) = took.split_once(';').unwrap();
    let command = text.lines().nth(at + 1).unwrap().trim();
    let options = command.strip_prefix("whylag explain RUN ").unwrap();
    let options: Vec<&str> = [file].into_iter().chain(options.split(' ')).collect();
    let alone = says(&options);
    assert!(alone.starts_with("1. ") && alone.contains(&format!(": {took}, received")), "{alone}");
}
