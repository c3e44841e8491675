//! One program on hosts that differ in what a read of their clock costs.
//!
//! The only test that changes a setting of the machine: the clocksource. A process of its own puts
//! it back as soon as the test is gone, whichever way it goes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::{Finding, MessageMetric, Run};

use crate::common::programs::mystery;
use crate::common::quiet::alone;
use crate::common::values::Values;
use crate::common::{Helper, Lab, wait_until};
use crate::{Case, table};

const CAUSE: &str = "slow-clocksource";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";
/// From here on a read is called slow.
const SLOW_NS: u64 = 100;
/// Reads before each publish of the program.
const READS: f64 = 100.0;

/// Records the program, on a host whose reads `library` makes slow.
fn record(lab: &Lab, library: Option<&Path>) -> Option<Case> {
    let program = mystery("slow-clock");
    let output = alone(|| {
        let mut record = lab.recording(&[], [program.as_os_str(), "2".as_ref()]);
        if let Some(library) = library {
            record.env("LD_PRELOAD", library);
        }
        record.output().unwrap()
    })?;
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let truth = Values::of(printed.lines().last().unwrap());
    let findings = serde_json::from_value(lab.explain()["findings"].take()).unwrap();
    Some(Case { run: lab.run(), truth, findings })
}

fn named(case: &Case) -> Option<&Finding> {
    case.findings.iter().find(|finding| finding.cause == CAUSE)
}

fn read_ns(run: &Run) -> u64 {
    run.fact("clocksource.read_ns").unwrap().parse().unwrap()
}

/// Median gap before each publish, ns.
fn gaps(run: &Run) -> Vec<f64> {
    let median = |place| {
        let gaps = run.messages.histogram(0, 1, MessageMetric::ToPublish(place));
        gaps.quantile(0.5).unwrap() as f64
    };
    (0..4).map(median).collect()
}

#[test]
fn slow_reads_are_named_and_fast_ones_are_not() {
    let Some(lab) = Lab::new() else { return };
    let began = Instant::now();
    let library = mystery("slow-clock.so");
    let Some(slow) = record(&lab, Some(&library)) else { return };
    let finding = slow.findings.first().expect("nothing found");
    assert_eq!(finding.cause, CAUSE, "{}", slow.summary());
    let part = finding.lost_ns as f64 / slow.truth.get("lost_ns") as f64;
    // The way into the kernel and back is counted as the program's own: half of a short call.
    assert!((0.35..1.1).contains(&part), "{part:.2} of the truth: {}", slow.summary());
    assert!(read_ns(&slow.run) > 1000, "{}", read_ns(&slow.run));
    let evidence: Vec<&str> = finding.evidence.iter().map(|e| e.text.as_str()).collect();
    assert!(evidence.iter().any(|text| text.contains("long alike")), "{evidence:#?}");
    for other in ["cpu-runqueue", "cputime-clock-threads"] {
        assert!(finding.ruled_out.iter().any(|ruled_out| ruled_out.cause == other), "{finding:?}");
    }
    table::add("slow-clock", &slow, began);

    let Some(fast) = record(&lab, None) else { return };
    assert!(named(&fast).is_none(), "{}", fast.summary());
    grew_alike(&fast.run, &slow.run);
}

#[test]
fn the_same_run_on_another_clock_of_the_host() {
    let Some(lab) = Lab::new() else { return };
    let Some(other) = another_clock() else { return };
    let Some(first) = record(&lab, None) else { return };
    let switched = Switched::to(&other);
    let second = record(&lab, None);
    drop(switched);
    let Some(second) = second else { return };
    assert_eq!(second.run.fact("clocksource.current"), Some(other.as_str()));
    assert_ne!(first.run.fact("clocksource.current"), Some(other.as_str()));
    println!("a read: {} ns, with {other} {} ns", read_ns(&first.run), read_ns(&second.run));
    // The name of a clock is no evidence: what its reads cost is.
    for case in [&first, &second] {
        assert_eq!(named(case).is_some(), read_ns(&case.run) >= SLOW_NS, "{}", case.summary());
    }
    grew_alike(&first.run, &second.run);
}

/// Every gap of `slow` is longer by what its reads cost more.
fn grew_alike(fast: &Run, slow: &Run) {
    let more = READS * (read_ns(slow) as f64 - read_ns(fast) as f64);
    for (before, after) in gaps(fast).into_iter().zip(gaps(slow)) {
        let grew = after - before;
        // Where reads cost alike, gaps differ by the program's other work.
        let tolerance = 0.4 * more.abs() + before;
        assert!((grew - more).abs() < tolerance, "{before} ns, {after} ns: not {more} more");
    }
}

#[test]
fn a_killed_test_leaves_the_clock_as_it_was() {
    // Nobody measures meanwhile.
    let _lab = Lab::anywhere();
    let Some(other) = another_clock() else { return };
    let before = current();
    let test = std::env::current_exe().unwrap();
    let holder = Helper::spawn(
        Command::new(test)
            .args(["--exact", "slow_clock::holds_another_clock", "--ignored"])
            .stdout(Stdio::null()),
    );
    wait_until("the other clock", || current() == other);
    holder.signal(rustix::process::Signal::KILL);
    wait_until("the clock as it was", || current() == before);
}

#[test]
#[ignore = "run by a_killed_test_leaves_the_clock_as_it_was"]
fn holds_another_clock() {
    let _switched = Switched::to(&another_clock().unwrap());
    std::thread::sleep(Duration::from_secs(60));
}

/// The clocksource is another while this lives.
struct Switched {
    before: String,
    watchdog: Child,
}

impl Switched {
    fn to(other: &str) -> Switched {
        let before = current();
        // In a session of its own no signal to ours reaches it. Its input ends with us.
        let mut watchdog = Command::new("setsid");
        let script = "trap '' HUP INT TERM; read -r _; echo \"$1\" >\"$2\"";
        watchdog.args(["sh", "-c", script, "sh", &before]).arg(file()).stdin(Stdio::piped());
        let watchdog = watchdog.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let switched = Switched { before, watchdog };
        fs::write(file(), other).unwrap();
        assert_eq!(current(), other);
        switched
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let ended = self.watchdog.wait();
        if !std::thread::panicking() {
            assert!(ended.unwrap().success());
            assert_eq!(current(), self.before);
        }
    }
}

fn file() -> String {
    format!("{CLOCKSOURCE}/current_clocksource")
}

fn current() -> String {
    fs::read_to_string(file()).unwrap().trim().to_owned()
}

/// Another clock that the kernel offers, if this test may choose it; else says why not.
fn another_clock() -> Option<String> {
    let offered = fs::read_to_string(format!("{CLOCKSOURCE}/available_clocksource"));
    let offered = offered.unwrap_or_default();
    let now = current();
    let other = offered.split_whitespace().find(|clock| *clock != now);
    if other.is_none() {
        println!("skipped: this host has no clocksource but {now}");
    } else if fs::File::options().write(true).open(file()).is_err() {
        println!("skipped: the clocksource may not be changed here");
        return None;
    }
    other.map(str::to_owned)
}
