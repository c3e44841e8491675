//! System calls in windows, with `--cheap` and where a CPU makes too many of them, against what the program
//! counted and timed itself.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::programs::program;
use common::values::Values;
use common::{Helper, Lab, wait_until};
use model::{
    Account, Blocked, CallDuration, Metric, RecorderPart, Run, SampledCall, SlowMessages, Syscall,
};

const SECONDS: u64 = 10;

/// Calls of a burst, of which there are 5,000 a second: 2 are few enough to record all on the slowest host,
/// and more than 20 too many on the fastest.
const FEW: u64 = 2;
const MANY: u64 = 50;

fn steady_calls(seconds: u64, burst: u64) -> [OsString; 3] {
    [program("steady_calls").into(), seconds.to_string().into(), burst.to_string().into()]
}

#[test]
fn calls_in_windows_give_the_numbers_and_durations_of_all() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&["--cheap"], steady_calls(SECONDS, FEW));
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
    // A thread that begins under watch comes out of the kernel, although no end of a call is seen.
    let asker = run.threads.iter().find(|thread| thread.comm == "asker").unwrap();
    let [running, kernel] = [Account::Running, Account::Kernel].map(|a| asker.accounts.get(a));
    assert!(running > 10 * kernel, "{:?}", asker.accounts);
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
fn calls_are_all_recorded_as_long_as_no_cpu_makes_too_many() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], steady_calls(5, FEW));
    let own = Values::of(recorded.stdout());
    assert!(recorded.run.capabilities.iter().all(|one| one.part != RecorderPart::SampledCalls));
    assert_eq!(calls_recorded(&recorded.run, "getppid"), own.get("calls.getppid"));
    let annotations = explain::annotations(&recorded.run, SlowMessages::default());
    assert_eq!(annotations.sampled_calls, None);
}

/// Calls in histograms of all.
fn calls_recorded(run: &Run, name: &str) -> u64 {
    let metric = Metric::Syscall(Syscall::named(name).unwrap());
    let of_it = run.seconds.iter().filter(|second| second.metric == metric);
    of_it.map(|second| second.histogram.count()).sum()
}

#[test]
fn calls_are_sampled_where_a_cpu_makes_too_many_and_sleeps_keep_what_they_are_for() {
    let Some(lab) = Lab::new() else { return };
    let seconds = 8;
    let recorded = lab.record(&[], steady_calls(seconds, MANY));
    let (run, own) = (&recorded.run, Values::of(recorded.stdout()));
    let part = |wanted| run.capabilities.iter().find(|one| one.part == wanted).unwrap();
    let calls = part(RecorderPart::SystemCalls);
    assert!(!calls.on && calls.because.contains(" a second on a CPU"), "{calls:?}");
    assert!(part(RecorderPart::SampledCalls).on);
    assert!(part(RecorderPart::Requests).on);
    // All of them for the first two seconds.
    let all = own.get("calls.getppid");
    let whole = calls_recorded(run, "getppid") as f64 / all as f64 * seconds as f64;
    assert!((1.5..5.0).contains(&whole), "the calls of {whole} s");
    let thread = |name: &str| run.threads.iter().find(|thread| thread.comm == name).unwrap();
    let asker = &thread("asker").accounts;
    let running = asker.get(Account::Running) as f64 / asker.sum_of(Account::is_running) as f64;
    let since = 1.0 - whole / seconds as f64;
    assert!((running - since).abs() < 0.2, "{running} of its time, {since} expected");
    // What samples found it in is what its accounts of the first seconds say.
    let getppid = Syscall::named("getppid").unwrap();
    let tid = thread("asker").tid;
    let of_asker = run.sums.paths.iter().filter(|path| path.sampled && path.tid == tid);
    let of_running: Vec<_> = of_asker.filter(|path| path.account == Account::Running).collect();
    let in_call = of_running.iter().filter(|path| path.call == Some(getppid));
    let samples: u64 = of_running.iter().map(|path| path.count).sum();
    let part = in_call.map(|path| path.count).sum::<u64>() as f64 / samples as f64;
    let in_getppid = asker.get(Account::Syscall(getppid)) as f64;
    let exact = in_getppid / (in_getppid + asker.get(Account::User) as f64);
    assert!((0.3..3.0).contains(&(part / exact)), "{part} of {samples} samples, {exact}");
    // Sampled from then on.
    let sampled = explain::annotations(run, SlowMessages::default()).sampled_calls.unwrap();
    let rate = sampled.calls.iter().find(|one| one.call == getppid).unwrap().per_second.unwrap();
    let truth = all as f64 / seconds as f64;
    let off = (rate.value - truth).abs();
    // The windows are not of the first seconds, and a busy machine is not the same all the time.
    assert!(off <= rate.high - rate.low + truth / 4.0, "{truth}, {rate:?}");
    // A sleep is known by its call as before.
    for (name, call) in [("napper", "pselect6"), ("sleeper", "poll")] {
        let thread = thread(name);
        let kept = run.outliers.iter().filter(|o| o.tid == thread.tid);
        let sleeps = kept.filter(|o| o.blocked == Some(Blocked::TimerSleep));
        let late = sleeps.filter(|o| o.start_ns > run.header.started_ns + 5_000_000_000);
        let calls = late.map(|o| o.syscall.as_ref().unwrap().call.to_string());
        let calls: Vec<_> = calls.collect();
        assert!(calls.len() > 20 && calls.iter().all(|one| one == call), "{name}: {calls:?}");
        let asleep = thread.accounts.get(Account::Blocked(Blocked::TimerSleep)) as f64;
        assert!(asleep > 0.8 * thread.wall_ns() as f64, "{name}: {:?}", thread.accounts);
    }
}

/// They are given up after 2 seconds, and the program ends then.
#[test]
fn calls_count_as_recorded_where_all_but_a_moment_at_the_end_was() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], steady_calls(2, MANY));
    let is_calls = |one: &&model::Capability| one.part == RecorderPart::SystemCalls;
    let calls = recorded.run.capabilities.iter().find(is_calls).unwrap();
    let part = calls_recorded(&recorded.run, "getppid") as f64
        / Values::of(recorded.stdout()).get("calls.getppid") as f64;
    println!("{part} of the calls, {calls:?}");
    // A busy machine may take longer to see the program's end.
    assert!(!calls.on || part > 0.85, "{part}, {calls:?}");
    if recorded.run.length_ns() < 2_200_000_000 {
        assert!(calls.on, "{calls:?}");
    }
    let text = String::from_utf8(lab.answer("show", &[])).unwrap();
    let is_told = text.contains("not all the time: system calls (recorded for the first");
    assert_eq!(is_told, calls.on && !calls.because.is_empty(), "{text}");
    assert!(!calls.on || !calls.because.contains("estimates"), "{calls:?}");
}

/// After 2 of 8 seconds the programs of requests tell it, by the socket.
#[test]
fn who_waits_for_an_answer_is_known_without_calls() {
    let Some(lab) = Lab::new() else { return };
    let command: [OsString; 2] = [program("asks_in_storm").into(), "8".into()];
    let recorded = lab.record(&[], command);
    let (run, own) = (&recorded.run, Values::of(recorded.stdout()));
    assert!(run.capabilities.iter().any(|c| c.part == RecorderPart::SystemCalls && !c.on));
    let at_sockets = |asked| -> u64 {
        let account = Account::Blocked(Blocked::SocketReceive);
        let waits = run.sums.waits.iter().filter(|wait| wait.account == account);
        waits.filter(|wait| wait.asked == asked).map(|wait| wait.count).sum()
    };
    assert!(own.get("asked") > 500, "{}", recorded.stdout());
    // Both count the same switches; a few may be of a lock of the kernel.
    for (asked, waits) in [(true, "waits_for_answers"), (false, "waits_for_questions")] {
        let (seen, truth) = (at_sockets(asked) as f64, own.get(waits) as f64);
        let off = (seen - truth).abs();
        assert!(
            off < 0.03 * own.get("asked") as f64,
            "{waits}: {seen} seen; {}",
            recorded.stdout()
        );
    }
    assert!(at_sockets(true) > 0, "{}", recorded.stdout());
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
