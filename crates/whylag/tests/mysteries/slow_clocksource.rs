//! One program on hosts that differ in what a read of their clock costs.
//!
//! The only test that changes a setting of the machine: the clocksource. A process of its own puts
//! it back as soon as the test is gone, whichever way it goes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use model::{Finding, MessageMetric, Run};

use crate::common::disturbance::{figures_are_asked_for, recorded};
use crate::common::programs::mystery;
use crate::common::values::Values;
use crate::common::{Helper, Lab, Recorded, wait_until};
use crate::{Case, table};

const CAUSE: &str = "slow-clocksource";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";
/// From here on a read is called slow.
const SLOW_NS: u64 = 100;
/// Reads before each publish of the program.
const READS: f64 = 100.0;

/// Records the program, on a host whose reads `library` makes slow.
fn record(lab: &Lab, library: Option<&Path>) -> Case {
    let program = mystery("slow-clocksource");
    let seconds = if figures_are_asked_for() { "2" } else { "1" };
    let record = || {
        let mut record = lab.recording(&[], [program.as_os_str(), seconds.as_ref()]);
        if let Some(library) = library {
            record.env("LD_PRELOAD", library);
        }
        let output = record.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Recorded { run: lab.run(), output }
    };
    let (recorded, figures) = recorded(record, |recorded| Some(&recorded.run));
    let truth = Values::of(recorded.stdout().lines().last().unwrap());
    let findings = serde_json::from_value(lab.explain()["findings"].take()).unwrap();
    Case { run: recorded.run, truth, findings, figures }
}

/// The program on this host as it is, recorded once for all tests.
fn as_it_is(lab: &Lab) -> &'static Case {
    static CASE: OnceLock<Case> = OnceLock::new();
    CASE.get_or_init(|| record(lab, None))
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
    let library = mystery("slow-clocksource.so");
    let slow = record(&lab, Some(&library));
    let finding = named(&slow).unwrap_or_else(|| panic!("{}", slow.summary()));
    if slow.figures.judge("slow-clocksource comes first, with what it cost") {
        assert_eq!(slow.findings[0].cause, CAUSE, "{}", slow.summary());
        let part = finding.lost_ns as f64 / slow.truth.get("lost_ns") as f64;
        // What a read takes is measured before recording, which makes each call slower.
        assert!((0.6..1.15).contains(&part), "{part:.2} of the truth: {}", slow.summary());
        table::add(CAUSE, &slow, began);
    }
    assert!(read_ns(&slow.run) > 1000, "{}", read_ns(&slow.run));
    let evidence: Vec<&str> = finding.evidence.iter().map(|e| e.text.as_str()).collect();
    assert!(evidence.iter().any(|text| text.contains("equally long")), "{evidence:#?}");
    for other in ["cpu-runqueue", "cputime-clock-threads"] {
        assert!(finding.ruled_out.iter().any(|ruled_out| ruled_out.cause == other), "{finding:?}");
    }

    let fast = as_it_is(&lab);
    assert!(named(fast).is_none(), "{}", fast.summary());
    grew_alike(fast, &slow);
}

#[test]
fn the_same_run_on_another_clock_of_the_host() {
    let Some(lab) = Lab::new() else { return };
    let Some(other) = another_clock() else { return };
    let first = as_it_is(&lab);
    let switched = Switched::to(&other);
    let second = record(&lab, None);
    drop(switched);
    assert_eq!(second.run.fact("clocksource.current"), Some(other.as_str()));
    assert_ne!(first.run.fact("clocksource.current"), Some(other.as_str()));
    println!("a read: {} ns, with {other} {} ns", read_ns(&first.run), read_ns(&second.run));
    // The name of a clock is no evidence: what its reads cost is.
    for case in [first, &second] {
        assert_eq!(named(case).is_some(), read_ns(&case.run) >= SLOW_NS, "{}", case.summary());
    }
    grew_alike(first, &second);
}

/// Every gap of `slow` is longer by what its reads cost more.
fn grew_alike(fast: &Case, slow: &Case) {
    const WHAT: &str = "gaps grow by what reads of the clock cost";
    if !fast.figures.judge(WHAT) || !slow.figures.judge(WHAT) {
        return;
    }
    let more = READS * (read_ns(&slow.run) as f64 - read_ns(&fast.run) as f64);
    for (before, after) in gaps(&fast.run).into_iter().zip(gaps(&slow.run)) {
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
            .args(["--exact", "slow_clocksource::holds_another_clock", "--ignored"])
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
