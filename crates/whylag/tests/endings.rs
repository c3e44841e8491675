//! Threads that come and go while they are watched, and what ends a recording.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::programs::program;
use common::values::Values;
use common::{Helper, Lab, lost, wait_for, wait_until};
use model::{Account, Blocked, Run, RunStatus, ThreadAccounts};
use rustix::process::Signal;

const MS: u64 = 1_000_000;

/// A running crowd, and what it has printed until it was ready.
fn crowd(arguments: &[&str]) -> (Helper, Values) {
    let mut command = Command::new(program("crowd"));
    let mut helper = Helper::spawn(command.args(arguments).stdout(Stdio::piped()));
    let mut lines = BufReader::new(helper.0.stdout.take().unwrap()).lines();
    let mut text = String::new();
    while !text.contains("ready=") {
        text += &lines.next().expect("the crowd has ended").unwrap();
        text.push('\n');
    }
    // It goes on printing; somebody has to read.
    std::thread::spawn(move || lines.for_each(drop));
    (helper, Values::of(&text))
}

fn tids(run: &Run) -> BTreeSet<u64> {
    run.threads.iter().map(|thread| u64::from(thread.tid)).collect()
}

#[track_caller]
fn assert_sound(run: &Run) {
    assert_eq!(lost(run), BTreeMap::new());
    assert_accounted(run);
}

#[track_caller]
fn assert_accounted(run: &Run) {
    assert_eq!(run.status, RunStatus::Complete);
    for thread in &run.threads {
        assert_eq!(thread.accounts.total(), thread.wall_ns(), "{thread:?}");
    }
    let unaccounted = run.accounts().get(Account::Unaccounted);
    assert!(unaccounted * 200 < run.wall_ns(), "{unaccounted} of {} ns", run.wall_ns());
}

#[test]
fn threads_come_and_go_under_watch() {
    let Some(lab) = Lab::new() else { return };
    let (crowd, known) = crowd(&["6", "4000", "40"]);
    let run = lab.record_target(&["-p", &crowd.pid(), "--time", "1s"]).run;
    assert_sound(&run);
    let began = run.header.started_ns;
    let length = run.length_ns();
    assert!((900 * MS..3_000 * MS).contains(&length), "{length}");
    for (_, tid) in known.keys_after("worker-") {
        let worker = run.threads.iter().find(|thread| u64::from(thread.tid) == tid).unwrap();
        let asleep = worker.accounts.get(Account::Blocked(Blocked::Futex));
        assert!(worker.alive && asleep * 10 > length * 9, "{worker:?}");
    }
    // One after another: 100 ms of pause, 20 ms of life.
    let mut late: Vec<_> = run.threads.iter().filter(|t| t.comm.starts_with("late-")).collect();
    assert!((4..=12 * length / (1_000 * MS)).contains(&(late.len() as u64)), "{late:?}");
    late.sort_by_key(|thread| thread.first_ns);
    assert!(late.iter().skip(1).all(|thread| thread.first_ns > began), "{late:?}");
    // The first may have lived before it was found, a while after the begin on a busy machine.
    let whole: Vec<_> = late.iter().skip(1).filter(|thread| !thread.alive).collect();
    assert!(whole.len() + 2 >= late.len(), "only the first and the last may be cut: {late:?}");
    for thread in whole {
        let asleep = thread.accounts.get(Account::Blocked(Blocked::TimerSleep));
        assert!(asleep >= 19 * MS && asleep <= thread.wall_ns(), "{thread:?}");
    }
}

/// Threads that end at once keep the recorder from its CPU while they fill a ring, and so does a hypervisor:
/// at most this part of the outliers may be lost. Seen: 219 of some 12,500. Sums do not come by a ring.
const OUTLIERS_LOST: f64 = 0.1;

#[test]
fn two_thousand_threads_born_under_watch() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("crowd").to_str().unwrap(), "2000", "500"]);
    assert_accounted(&recorded.run);
    let mut losses = lost(&recorded.run);
    let outliers = losses.remove("outliers (ring full)").unwrap_or(0);
    let kept = recorded.run.outlier_count;
    assert!(outliers as f64 <= OUTLIERS_LOST * (outliers + kept) as f64, "{outliers}, {kept} kept");
    assert_eq!(losses, BTreeMap::new());
    let printed = Values::of(recorded.stdout());
    let expected: BTreeSet<u64> = printed.keys_after("worker-").map(|(_, tid)| tid).collect();
    let workers = recorded.run.threads.iter().filter(|t| t.comm.starts_with("worker-"));
    let seen: BTreeSet<u64> = workers.map(|thread| u64::from(thread.tid)).collect();
    assert_eq!((seen.len(), recorded.run.threads.len()), (2000, 2001));
    assert_eq!(seen, expected);
}

/// The command's first shell stops its recorder, as a host without a CPU for it would, while threads begin.
const WITHOUT_RECORDER: &str =
    "kill -STOP $PPID; \"$0\" 4000 2500 & sleep 1; kill -CONT $PPID; wait";

#[test]
fn threads_that_found_no_room_are_met_asleep_and_accounted() {
    let Some(lab) = Lab::new() else { return };
    let crowd = program("crowd");
    let command = ["sh", "-c", WITHOUT_RECORDER, crowd.to_str().unwrap()];
    let run = lab.record(&["--follow"], command).run;
    let losses = lost(&run);
    let without_room: u64 =
        losses.iter().filter(|(kind, _)| kind.ends_with("(no room)")).map(|(_, n)| n).sum();
    assert!(without_room > 500, "{losses:?}");
    for thread in &run.threads {
        assert_eq!(thread.accounts.total(), thread.wall_ns(), "{thread:?}");
    }
    let workers = || run.threads.iter().filter(|thread| thread.comm.starts_with("worker-"));
    assert_eq!(workers().count(), 4000);
    let sum = |of: fn(&ThreadAccounts) -> u64| workers().map(of).sum::<u64>() as f64;
    let (wall, asleep) =
        (sum(ThreadAccounts::wall_ns), sum(|t| t.accounts.get(Account::Blocked(Blocked::Futex))));
    // They sleep until the end; with so many some wait for a CPU when they begin and end.
    assert!(asleep > 0.9 * wall, "{asleep} of {wall}: {:?}", run.accounts());
}

#[test]
fn a_thread_that_ends_ends_its_recording() {
    let Some(lab) = Lab::new() else { return };
    // Long enough for a recorder to begin on a busy machine.
    let (_crowd, known) = crowd(&["2", "4000"]);
    let tid = known.get("worker-0");
    let run = lab.record_target(&["-t", &tid.to_string()]).run;
    assert_sound(&run);
    assert_eq!(tids(&run), BTreeSet::from([tid]));
    let thread = &run.threads[0];
    assert_eq!((thread.comm.as_str(), thread.alive), ("worker-0", false));
    assert_eq!(u64::from(thread.tgid), known.get("main"));
    assert!(run.end.unwrap().reason.contains("ended"));
}

#[test]
fn a_killed_process_leaves_complete_accounts() {
    let Some(lab) = Lab::new() else { return };
    let (mut crowd, known) = crowd(&["8", "30000"]);
    let mut record = lab.verb("record");
    let mut recorder =
        Helper::spawn(record.args(["-p", &crowd.pid(), "--threshold", "1s"]).stderr(Stdio::null()));
    wait_until("a second stored", || {
        lab.runs_so_far().first().is_some_and(|run| run.length_ns > 1_000 * MS)
    });
    crowd.signal(Signal::KILL);
    crowd.0.wait().unwrap();
    assert!(wait_for(&mut recorder.0, Duration::from_secs(20)).success());
    let run = lab.run();
    assert_sound(&run);
    assert_eq!(tids(&run).len(), 9);
    for (name, tid) in known.keys_after("worker-") {
        let worker = run.threads.iter().find(|thread| u64::from(thread.tid) == tid).unwrap();
        let asleep = worker.accounts.get(Account::Blocked(Blocked::Futex));
        assert!(!worker.alive && asleep > 900 * MS, "worker-{name}: {worker:?}");
    }
    // Each slept until it was killed: one outlier, which ended in no other way.
    let sleeps = run.outliers.iter().filter(|o| o.blocked == Some(Blocked::Futex));
    assert_eq!(sleeps.count(), 8, "{:?}", run.outliers);
}

/// A long sleep is kept with the next step of its thread, and here there is none before the end, unless
/// something preempts it.
#[test]
fn the_last_sleep_of_a_thread_that_runs_to_the_end_is_kept() {
    let Some(lab) = Lab::new() else { return };
    let mut with_stack = 0;
    for _ in 0..20 {
        let run = lab.record(&["--cheap"], [program("last_sleep")]).run;
        let mut sleeps = run.outliers.iter().filter(|o| o.blocked == Some(Blocked::TimerSleep));
        // The timer runs before the thread leaves its CPU, which the host may take away in between.
        let kept = sleeps.find(|sleep| sleep.duration_ns >= 40 * MS);
        // The host hides a switch now and then, and that is counted.
        assert!(kept.is_some() || !lost(&run).is_empty(), "{:?}", run.outliers);
        // Of clock_nanosleep: CLOCK_REALTIME, for a time, not until one.
        let arguments = kept.and_then(|sleep| sleep.syscall.as_ref()).map(|call| &call.args[..2]);
        assert!(arguments.is_none_or(|args| args == [0, 0]), "{kept:?}");
        with_stack += usize::from(kept.is_some_and(|sleep| sleep.user_stack.is_some()));
    }
    // Walked before the first sleeps of a thread, of which loading the program may be some.
    assert!(with_stack > 10, "{with_stack} of 20");
}

#[test]
fn ctrl_c_takes_effect_at_once() {
    let Some(lab) = Lab::new() else { return };
    let (mut crowd, _) = crowd(&["3", "30000"]);
    let mut record = lab.verb("record");
    let mut recorder = Helper::spawn(record.args(["-p", &crowd.pid()]).stderr(Stdio::null()));
    wait_until("the run to begin", || !lab.runs_so_far().is_empty());
    recorder.signal(Signal::INT);
    assert_eq!(wait_for(&mut recorder.0, Duration::from_secs(20)).code(), Some(0));
    let run = lab.run();
    assert_sound(&run);
    assert!(run.end.unwrap().reason.contains("SIGINT"));
    assert_eq!(run.threads.len(), 4);
    assert!(crowd.0.try_wait().unwrap().is_none(), "the target has ended, too");
}

#[test]
fn time_ends_the_recording_and_not_the_command() {
    let Some(lab) = Lab::new() else { return };
    let command = ["sh", "-c", "sleep 1.2; echo went on; exit 5"];
    let output = lab.recording(&["--time", "300ms"], command).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "went on\n");
    assert_eq!(output.status.code(), Some(5));
    let run = lab.run();
    assert_sound(&run);
    // The command goes on for 1.2 s.
    assert!((300 * MS..1_200 * MS).contains(&run.length_ns()), "{}", run.length_ns());
    assert_eq!(run.end.as_ref().unwrap().exit_status, Some(5));
    assert!(run.threads.iter().all(|thread| thread.alive), "{:?}", run.threads);
}
