//! System calls in windows (`record --cheap`), against what the program counted and timed itself.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::programs::program;
use common::values::Values;
use common::{Helper, Lab, wait_until};
use model::{CallDuration, RecorderPart, SampledCall, SlowMessages, Syscall};

const SECONDS: u64 = 10;

#[test]
fn calls_in_windows_give_the_numbers_and_durations_of_all() {
    let Some(lab) = Lab::new() else { return };
    let words = [program("steady_calls").into_os_string(), SECONDS.to_string().into()];
    let recorded = lab.record(&["--cheap"], words);
    let (run, own) = (&recorded.run, Values::of(recorded.stdout()));
    let sampled = explain::annotations(run, SlowMessages::default()).sampled_calls.unwrap();
    // One a second, at random; a busy machine makes some longer.
    assert!((6..=21).contains(&sampled.windows), "{sampled:?}");
    let share = sampled.windows_ns as f64 / run.length_ns() as f64;
    assert!(share < 0.1, "{sampled:?}");
    let of = |name: &str| -> &SampledCall {
        let call = Syscall::named(name).unwrap();
        sampled.calls.iter().find(|one| one.call == call).unwrap_or_else(|| panic!("{sampled:?}"))
    };
    for name in ["getppid", "pselect6"] {
        let truth = own.get(&format!("calls.{name}")) as f64 / SECONDS as f64;
        let rate = of(name).per_second.unwrap();
        // One in twenty intervals of 95 % does not have the truth; none is so far off. The recording
        // begins before the program.
        let off = (rate.value - truth).abs();
        assert!(off <= rate.high - rate.low + truth / 20.0, "{name}: {truth}, {rate:?}");
        assert!(rate.low > truth / 3.0 && rate.high < truth * 3.0, "{name}: {truth}, {rate:?}");
    }
    // A nap in four or so began before its window.
    let nap = of("pselect6");
    assert!(nap.censored > 0, "{nap:?}");
    let CallDuration::Known(median) = nap.p50 else { panic!("{nap:?}") };
    let truth = own.get("median.pselect6") as f64;
    assert!((0.8..1.25).contains(&(median.value / truth)), "{truth} ns, {median:?}");
    // A window is shorter than these, unless the recorder had to wait for a CPU to end it.
    let sleep = of("poll");
    assert!(2 * sleep.censored > sleep.n, "{sleep:?}");
    let is_shorter = |ns: f64| ns < 0.8 * own.get("median.poll") as f64;
    assert!(!matches!(sleep.p50, CallDuration::Known(p50) if is_shorter(p50.value)), "{sleep:?}");
    // Between windows calls run no program.
    let runs = |name| run.cost.probes.iter().filter(|p| p.program == name).map(|p| p.runs).sum();
    let (enter, exit): (u64, u64) = (runs("sys_enter"), runs("sys_exit"));
    assert!(enter > 0 && (enter + exit) / 2 < own.get("calls.getppid") / 4, "{:?}", run.cost);
    let text = String::from_utf8(lab.answer("show", &[])).unwrap();
    assert!(text.contains("System calls, estimated"), "{text}");
    // The short ones alone are whole in windows: what these take is no duration of all.
    assert!(!text.contains("sampled_syscall"), "{text}");
}

#[test]
fn without_cheap_there_are_no_windows() {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&[], [program("calls")]).run;
    assert_eq!(explain::annotations(&run, SlowMessages::default()).sampled_calls, None);
}

#[test]
fn a_host_of_many_threads_has_no_windows_and_is_told_why() {
    let Some(lab) = Lab::new() else { return };
    let sleepers = Helper::spawn(Command::new(program("sleepers")).arg("2100"));
    let tasks = PathBuf::from(format!("/proc/{}/task", sleepers.pid()));
    wait_until("the threads", || fs::read_dir(&tasks).unwrap().count() > 2_100);
    let run = lab.record(&["--cheap"], [program("calls")]).run;
    let sampled = run.capabilities.iter().find(|one| one.part == RecorderPart::SampledCalls);
    let sampled = sampled.unwrap();
    assert!(!sampled.on && sampled.because.contains("more than 2000"), "{sampled:?}");
    assert!(run.seconds.iter().all(|second| !second.metric.is_of_windows()));
    assert_eq!(explain::annotations(&run, SlowMessages::default()).sampled_calls, None);
}
