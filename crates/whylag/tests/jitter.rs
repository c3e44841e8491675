//! `whylag jitter` as a user runs it: every tick is there, and what makes it late is named.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{Lab, wait_until};
use model::{Jitter, JitterSeries};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use store::{Sqlite, Store};

fn jitter(output: &Output) -> Jitter {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn ticks(series: &JitterSeries) -> u64 {
    series.late.count() + series.early.count()
}

#[test]
fn each_source_gives_all_its_ticks_and_the_run_is_kept() {
    let lab = Lab::anywhere();
    let options = ["--source", "all", "--interval", "2ms", "--time", "200ms", "--json"];
    let measured = jitter(&lab.verb("jitter").args(options).output().unwrap());
    assert_eq!(measured.series.len(), 8);
    for series in &measured.series {
        assert_eq!((series.intended, ticks(series)), (100, 100), "{}", series.source);
        assert_eq!(series.early.count(), 0, "{}", series.source);
        assert!(series.thread.as_ref().unwrap().slack_ns.is_some());
    }
    assert!(measured.changed.is_empty());
    for source in ["timerfd", "clock_nanosleep"] {
        let law = measured.laws.iter().find(|law| law.source == source).unwrap();
        assert_ne!(law.best.as_deref(), Some("stepped 1 ms"), "{law:#?} {:?}", measured.controls);
    }

    let kept = lab.run();
    assert!(kept.jitter.as_ref() == Some(&measured), "what is kept is not what was printed");
    assert!(kept.fact("kernel.release").is_some());
    let listed = String::from_utf8(lab.answer("runs", &[])).unwrap();
    assert!(listed.contains("jitter --source all --interval 2ms"), "{listed}");
    let shown = String::from_utf8(lab.answer("show", &[])).unwrap();
    assert!(shown.contains("posix-timer-thread") && shown.contains("Law of timerfd"), "{shown}");
}

#[test]
fn a_stored_run_is_judged_anew_from_all_its_ticks() {
    let lab = Lab::anywhere();
    let options = ["--source", "spin", "--interval", "50us", "--time", "1500ms", "--json"];
    let output = lab.verb("jitter").args(options).output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let measured = jitter(&output);
    assert_eq!((measured.series[0].intended, measured.series[0].ticks.len()), (30_000, 20_000));

    let store = Sqlite::open_read_only(&lab.store()).unwrap();
    let stored = store.load(store.newest().unwrap().unwrap()).unwrap().jitter.unwrap();
    assert_eq!(stored.series[0].ticks.len(), 30_000);
    assert!(stored.laws.is_empty() && stored.findings.is_empty() && stored.ruled_out.is_empty());

    let explained = lab.explain();
    for (key, value) in printed.as_object().unwrap() {
        assert!(explained[key] == *value, "{key}");
    }
    for key in ["run", "wall_ns", "unaccounted_ns", "lost_ns", "accounts", "losses", "cost"] {
        assert!(!explained[key].is_null(), "{key}");
    }
    // What is printed is not all that is judged.
    let exported = lab.run().jitter.unwrap();
    assert_eq!(exported.series[0].ticks.len(), 30_000);
    assert_eq!(exported.laws, measured.laws);
    assert_eq!(exported.series[0].periods, measured.series[0].periods);
}

#[test]
fn a_cause_of_late_ticks_is_looked_for_where_timers_were_measured() {
    let lab = Lab::anywhere();
    let options = ["--source", "timerfd", "--interval", "2ms", "--time", "200ms", "--no-record"];
    lab.answer("jitter", &options);
    let why_not = |cause| String::from_utf8(lab.answer("explain", &["--why-not", cause])).unwrap();
    let slack = why_not("timer-slack");
    assert!(slack.contains("is not claimed") && slack.contains("missing"), "{slack}");
    let throttled = why_not("rt-throttling");
    assert!(throttled.contains("no thread is real-time"), "{throttled}");
    let other = why_not("mmap-lock");
    assert!(other.contains("was not looked for") && other.contains("whylag record"), "{other}");

    lab.record(&[], ["true"]);
    let slack = why_not("timer-slack");
    assert!(slack.contains("no timers were measured in this run"), "{slack}");
}

#[test]
fn a_stop_of_500_ms_is_500_late_ticks() {
    let lab = Lab::anywhere();
    let mut command = lab.verb("jitter");
    command.args(["--source", "timerfd", "--interval", "1ms", "--time", "5s", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    std::thread::sleep(Duration::from_secs(2));
    kill_process(pid, Signal::STOP).unwrap();
    // Its threads stop when they come to a CPU.
    let tasks = || fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let state = |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).unwrap();
    let is_stopped = |task| state(task).rsplit(')').next().unwrap().starts_with(" T");
    wait_until("all threads to be stopped", || tasks().all(|task| is_stopped(task.unwrap())));
    std::thread::sleep(Duration::from_millis(500));
    kill_process(pid, Signal::CONT).unwrap();
    let measured = jitter(&child.wait_with_output().unwrap());
    let series = &measured.series[0];
    assert_eq!((series.intended, ticks(series)), (5000, 5000));
    // Those in the stop are late by what was left of it, the others by what the machine is busy.
    let stop = &series.worst[0];
    let ms = stop.late_ns as f64 / 1e6;
    assert!(ms >= 499.0, "{ms} ms");
    let in_stop = stop.intended_ns..stop.intended_ns + stop.late_ns as u64;
    let others: i64 =
        series.ticks.iter().filter(|tick| !in_stop.contains(&tick.0)).map(|tick| tick.1).sum();
    let truth = (ms * (ms + 1.0) / 2.0 * 1e6 + others as f64) / 5000.0;
    let mean = series.mean_ns().unwrap();
    assert!((mean / truth - 1.0).abs() < 0.02, "mean {mean} ns, truth {truth} ns");
    assert!(series.missed >= 499, "{}", series.missed);
}

#[test]
fn a_slack_of_5_ms_is_named() {
    let lab = Lab::anywhere();
    let mut command = lab.verb("jitter");
    command.args(["--ladder", "7ms..70ms", "--time", "1s", "--json"]);
    // SAFETY: between fork and exec; one system call. Slack is inherited by exec and by threads.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_TIMERSLACK, 5_000_000) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let measured = jitter(&command.output().unwrap());
    let slack = measured.series[0].thread.as_ref().unwrap().slack_ns;
    assert_eq!(slack, Some(5_000_000));
    let causes: Vec<&str> = measured.findings.iter().map(|f| f.cause.as_str()).collect();
    // Beside other programs ticks are late for other reasons, too.
    assert!(causes.contains(&"timer-slack"), "{causes:?}: {:#?}", measured.laws);
    let slack = measured.findings.iter().find(|finding| finding.cause == "timer-slack").unwrap();
    assert!(slack.fix.contains("PR_SET_TIMERSLACK"));
    let explained = String::from_utf8(lab.answer("explain", &[])).unwrap();
    assert!(explained.starts_with(causes[0]), "{explained}");
}

/// A shell that prints ticks which it does not have to wait for: each 0.4 % of what was asked for
/// too late, as a wrong conversion factor makes them.
const PROPORTIONAL: &str = r#"
read up _ < /proc/uptime
now=${up%.*}${up#*.}0000000
echo starting
for n in $(seq 60); do
    case $((n % 3)) in 0) asked=5500000 ;; 1) asked=14600000 ;; 2) asked=20000000 ;; esac
    intended=$((now + asked))
    now=$((intended + asked / 250 + n % 7 * 100))
    echo "$intended $now"
done
sleep 1
exit 7
"#;

#[test]
fn a_program_that_prints_its_ticks_is_judged() {
    let lab = Lab::anywhere_beside_others();
    let mut command = lab.verb("jitter");
    // Nothing to record: these ticks come from no timer.
    let options = ["--factor", "10ns", "--no-record", "--json"];
    command.args(options).args(["--", "sh", "-c", PROPORTIONAL]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let measured: Jitter = serde_json::from_slice(&output.stdout).unwrap();
    let program = measured.program.as_ref().unwrap();
    assert_eq!((measured.series[0].intended, program.other_lines), (60, 1));
    assert!(!program.threads.is_empty());
    assert_eq!(measured.findings[0].cause, "timer-proportional", "{:#?}", measured.laws);
    let conversion = measured.conversion.unwrap();
    assert!(conversion.inferred && (conversion.true_ns.unwrap() - 10.04).abs() < 1e-3);
}

#[test]
fn a_factor_is_computed_without_measuring() {
    let lab = Lab::anywhere_beside_others();
    let told = String::from_utf8(lab.answer("jitter", &["--factor", "10ns", "--true", "10.04ns"]));
    let told = told.unwrap();
    assert!(told.contains("+4000.0 ppm") && told.contains("16 bits"), "{told}");
    assert!(!lab.store().exists());
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let lab = Lab::anywhere_beside_others();
    let refused = |options: &[&str], named: &[&str]| {
        let output = lab.verb("jitter").args(options).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {errors}");
        assert!(named.iter().all(|name| errors.contains(name)), "{named:?} in {errors}");
        errors.lines().count()
    };
    assert_eq!(refused(&["--source", "timer_fd"], &["timer_fd", "did you mean 'timerfd'"]), 1);
    assert_eq!(refused(&["--source", "x"], &["spin", "all"]), 1);
    assert_eq!(refused(&["--ladder", "1s..1ms"], &["100us..100ms"]), 1);
    assert_eq!(refused(&["--interval", "1ns"], &["10 us"]), 1);
    assert_eq!(refused(&["--interval", "1s", "--time", "1ms"], &["no tick"]), 1);
    assert_eq!(refused(&["--cpu", "1000"], &["1000", "may use"]), 1);
    assert_eq!(refused(&["--", "/no/such/program"], &["/no/such/program"]), 1);
    refused(&["--ladder", "1ms"], &["100us..100ms"]);
    refused(&["--fifo", "100"], &["100"]);
    refused(&["--source", "spin", "--", "true"], &["cannot be used with"]);
    refused(&["--factor", "ten"], &["10.04ns"]);
}

#[test]
fn a_priority_that_is_not_allowed_is_refused() {
    let lab = Lab::anywhere_beside_others();
    // Without CAP_SYS_NICE; as another user already there is none.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"]);
    command.arg(env!("CARGO_BIN_EXE_whylag")).arg("--store").arg(lab.store());
    let Ok(output) = command.args(["jitter", "--fifo", "50"]).output() else {
        println!("skipped: there is no setpriv");
        return;
    };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("setpriv") {
        println!("skipped: {errors}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("SCHED_FIFO 50") && errors.contains("CAP_SYS_NICE"), "{errors}");
}

#[test]
fn ctrl_c_ends_it_and_keeps_what_there_is() {
    let lab = Lab::anywhere_beside_others();
    let mut command = lab.verb("jitter");
    command.args(["--interval", "10ms", "--time", "1min", "--every", "100ms", "--over", "1ns"]);
    command.arg("--no-record");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.matches("over 1 ns: p50").count() >= 3, "{told}");
    let kept = lab.run();
    assert_eq!(kept.end.unwrap().reason, "Ctrl-C (SIGINT)");
    let series = &kept.jitter.unwrap().series[0];
    assert!((20..=200).contains(&series.intended), "{}", series.intended);
    assert_eq!(series.over, series.intended);
}
