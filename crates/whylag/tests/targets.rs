//! What can be watched: a process, a thread, the host, children; and how a recording ends.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::clocks::{Outside, on_cpu};
use common::family::{descendants, family, grown};
use common::programs::program;
use common::{Helper, Lab, lost, wait_for, wait_until};
use model::{EventKind, RunStatus};
use rustix::process::Signal;

/// A program that makes `threads` threads, all asleep, and with SIGUSR1 as many more as it is told.
fn sleepers_and(threads: usize, more: usize) -> Helper {
    let mut command = Command::new(program("sleepers"));
    command.args([threads.to_string(), more.to_string()]);
    let sleepers = Helper::spawn(command.stdout(Stdio::null()));
    wait_until("all threads to be there", || threads_of(&sleepers) == threads + 1);
    sleepers
}

fn sleepers(threads: usize) -> Helper {
    sleepers_and(threads, 1)
}

fn threads_of(helper: &Helper) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", helper.pid())).unwrap().count()
}

#[test]
fn all_threads_of_a_running_process_are_watched_new_ones_too() {
    let Some(lab) = Lab::beside_others() else { return };
    let target = sleepers(20);
    let outside = Outside::of([target.0.id()]);
    let mut record = lab.verb("record");
    record.args(["-p", &target.pid(), "--time", "4s"]).stderr(Stdio::null());
    let mut recorder = Helper::spawn(&mut record);
    wait_until("a second stored", || lab.runs_so_far().iter().any(|r| r.threads > 0));
    target.signal(Signal::USR1); // makes one more thread
    assert!(wait_for(&mut recorder.0, Duration::from_secs(10)).success());
    let run = lab.run();
    assert_eq!(run.threads.len(), 22, "the main thread, 20 and a new one");
    assert!(run.threads.iter().all(|t| t.tgid.to_string() == target.pid()));
    outside.agrees(&run, Duration::from_millis(3800));
}

/// How often a thread has gone to sleep by itself.
fn sleeps(tid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{tid}/task/{tid}/status")).unwrap();
    let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    sleeps.unwrap().trim().parse().unwrap()
}

/// Each time that it wakes up takes time from those who share its CPU (docs/cost.md).
#[test]
fn the_recorder_sleeps_while_there_is_nothing_to_do() {
    let Some(lab) = Lab::beside_others() else { return };
    let target = sleepers(5);
    let mut record = lab.verb("record");
    record.args(["-p", &target.pid()]).stderr(Stdio::null());
    let mut recorder = Helper::spawn(&mut record);
    // Whether its target traces itself it asks ever less often.
    let seconds = |least| lab.runs_so_far().iter().any(|run| run.length_ns >= least);
    wait_until("three seconds stored", || seconds(3_000_000_000));
    let (began, before) = (Instant::now(), sleeps(recorder.0.id()));
    std::thread::sleep(Duration::from_secs(2));
    let (after, took) = (sleeps(recorder.0.id()), began.elapsed().as_secs_f64());
    let a_second = (after - before) as f64 / took;
    assert!(a_second < 25.0, "{a_second} a second");
    // The target's end, of which there is no news but its own, ends the recording.
    drop(target);
    assert!(wait_for(&mut recorder.0, Duration::from_secs(10)).success());
    assert_eq!(lab.run().status, RunStatus::Complete);
}

#[test]
fn two_thousand_threads_are_all_accounted_for() {
    let Some(lab) = Lab::new() else { return };
    let target = sleepers(2_000);
    let outside = Outside::of([target.0.id()]);
    let run = lab.record_target(&["-p", &target.pid(), "--time", "1s"]).run;
    assert_eq!(run.threads.len(), 2_001);
    assert_eq!(lost(&run), BTreeMap::new());
    outside.agrees(&run, Duration::from_millis(900));
}

/// Bytes of the kernel's memory that the maps of a process have, as the kernel counts.
fn kernel_memory(pid: u32) -> u64 {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let mut maps = BTreeMap::new();
    for file in files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok()) {
        let number = |name: &str| -> Option<u64> {
            file.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        if let (Some(map), Some(bytes)) = (number("map_id:"), number("memlock:")) {
            maps.insert(map, bytes);
        }
    }
    maps.values().sum()
}

#[test]
fn kernel_memory_follows_the_threads() {
    let Some(lab) = Lab::new() else { return };
    let beside = |threads: usize| {
        let target = sleepers(threads);
        let stored = |lab: &Lab| lab.runs_so_far().iter().filter(|run| run.threads > 0).count();
        let before = stored(&lab);
        let mut record = lab.verb("record");
        let mut recorder = Helper::spawn(record.args(["-p", &target.pid()]).stderr(Stdio::null()));
        wait_until("a second stored", || stored(&lab) > before);
        let bytes = kernel_memory(recorder.0.id());
        recorder.signal(Signal::INT);
        assert!(wait_for(&mut recorder.0, Duration::from_secs(20)).success());
        let run = lab.run();
        assert_eq!((run.threads.len(), lost(&run)), (threads + 1, BTreeMap::new()));
        bytes
    };
    let (of_100, of_9000) = (beside(100), beside(9_000));
    // Each takes 4 kB. With room for all at the start both had 147 MB.
    assert!(of_100 < 70_000_000, "{of_100}");
    assert!(of_9000 > of_100 + 4_000 * 8_000, "{of_9000} and {of_100}");
}

/// While the recorder does not run it adds no room.
#[test]
fn threads_without_room_are_counted_and_taken_later() {
    const MORE: usize = 6_000;
    let Some(lab) = Lab::new() else { return };
    let target = sleepers_and(10, MORE);
    let mut record = lab.verb("record");
    let mut recorder = Helper::spawn(record.args(["-p", &target.pid()]).stderr(Stdio::null()));
    let stored = |n: usize| lab.runs_so_far().iter().any(|run| run.threads >= n as u64);
    wait_until("a second stored", || stored(11));
    recorder.signal(Signal::STOP);
    target.signal(Signal::USR1);
    wait_until("all threads to be there", || threads_of(&target) == MORE + 11);
    recorder.signal(Signal::CONT);
    wait_until("all threads stored", || stored(MORE + 11));
    recorder.signal(Signal::INT);
    assert!(wait_for(&mut recorder.0, Duration::from_secs(20)).success());
    let run = lab.run();
    assert_eq!(run.threads.len(), MORE + 11);
    let lost = lost(&run);
    let missed = lost.get("threads not watched, or not from their start (no room)");
    assert!(missed.is_some_and(|missed| (1_000..MORE as u64).contains(missed)), "{lost:?}");
}

#[test]
fn one_thread_is_watched_alone() {
    let Some(lab) = Lab::beside_others() else { return };
    let target = sleepers(5);
    let threads = std::fs::read_dir(format!("/proc/{}/task", target.pid())).unwrap();
    let tid = threads.map(|t| t.unwrap().file_name().to_str().unwrap().parse().unwrap()).max();
    let tid: u32 = tid.unwrap();
    assert_ne!(tid, target.0.id(), "a thread that is not the first");
    let run = lab.record_target(&["-t", &tid.to_string(), "--time", "300ms"]).run;
    assert_eq!(run.threads.iter().map(|t| t.tid).collect::<Vec<_>>(), [tid]);
}

/// Sums are by process id: what belongs to which of the two is not known, so both are named.
#[test]
fn two_processes_that_had_the_same_id_are_both_named() {
    let Some(lab) = Lab::beside_others() else { return };
    let recorded = lab.record(&["--follow"], [program("pid_reused")]);
    let pid: u32 = recorded.stdout().trim().parse().unwrap();
    let run = &recorded.run;
    let lives: Vec<_> = run.threads.iter().filter(|thread| thread.tid == pid).collect();
    assert_eq!(lives.len(), 2, "{lives:?}");
    let name = run.process_name(pid, run.comm(pid));
    assert_eq!(name, format!("second-life (pid {pid}, which was first-life's before)"));
    let others = run.threads.iter().find(|thread| thread.tid != pid).unwrap();
    let name = run.process_name(others.tgid, run.comm(others.tgid));
    assert_eq!(name, format!("pid_reused (pid {})", others.tgid));
}

/// Descriptors belong to the process, and the kernel walks over them with its first thread.
#[test]
fn the_sockets_of_one_thread_are_those_of_its_process() {
    let Some(lab) = Lab::beside_others() else { return };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    socket.send_to(b"left in the queue", address).unwrap();
    let (tell_tid, tid) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell_tid.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let _ = ended.recv();
    });
    let tid = tid.recv().unwrap();
    assert_ne!(tid.unsigned_abs(), std::process::id());
    let run = lab.record_target(&["-t", &tid.to_string(), "--time", "300ms"]).run;
    drop(end);
    thread.join().unwrap();
    assert_eq!(run.threads.len(), 1);
    let seconds = &run.sockets.queues;
    let own =
        seconds.iter().find(|second| second.socket.address.to_string() == address.to_string());
    assert!(own.is_some_and(|second| second.receive.max > 0), "{seconds:?}");
}

#[test]
fn the_whole_host_is_watched_but_not_the_recorder() {
    let Some(lab) = Lab::new() else { return };
    let target = sleepers(5);
    let run = lab.record_target(&["-a", "--time", "1s"]).run;
    let own = |tgid: u32| run.threads.iter().filter(|t| t.tgid == tgid).count();
    assert_eq!(own(target.0.id()), 6);
    assert_eq!(own(run.header.recorder_pid), 0);
    assert!(own(std::process::id()) > 0);
    let kernel_thread = |t: &&model::ThreadAccounts| t.comm.starts_with("kworker/");
    assert!(run.threads.iter().any(|t| kernel_thread(&t)));
}

const CHILDREN: &str = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done";

#[test]
fn short_lived_children_are_all_seen_with_follow() {
    let Some(lab) = Lab::new() else { return };
    let script = format!("{CHILDREN}; times");
    let recorded = lab.record(&["--follow"], ["sh", "-c", &script]);
    let by_kernel = cpu_times(recorded.stdout());
    let run = recorded.run;
    assert_eq!(run.threads.len(), 201, "the shell and 200 children");
    let execs = run.events.iter().filter(|event| event.kind == EventKind::Exec);
    assert_eq!(execs.filter(|event| event.detail.to_string() == "/bin/true").count(), 200);
    assert_eq!(lost(&run), BTreeMap::new());
    assert!(run.threads.iter().all(|t| !t.alive));
    // Four sums of whole hundredths of a second; children run for a moment before they are taken.
    let ran = Duration::from_nanos(run.threads.iter().map(|t| on_cpu(&t.accounts)).sum());
    let slack = by_kernel / 10 + Duration::from_millis(60);
    assert!(ran.abs_diff(by_kernel) < slack, "{ran:?} on a CPU, and {by_kernel:?} by the kernel");
}

/// What `times` of a shell prints: `0m0.01s 0m0.00s` of itself, and of its children.
fn cpu_times(output: &str) -> Duration {
    let times = output.split_ascii_whitespace().map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        let minutes: f64 = minutes.parse().unwrap();
        Duration::from_secs_f64(minutes * 60.0 + seconds.parse::<f64>().unwrap())
    });
    let times: Vec<Duration> = times.collect();
    assert_eq!(times.len(), 4, "{output}");
    times.into_iter().sum()
}

#[test]
fn children_are_left_out_without_follow() {
    let Some(lab) = Lab::beside_others() else { return };
    let run = lab.record(&[], ["sh", "-c", CHILDREN]).run;
    assert_eq!(run.threads.len(), 1);
}

/// Children of a process that spins on another CPU all the time, one every 5 ms while the recorder
/// attaches: each is found by the walks, or when it is forked.
#[test]
fn children_that_run_already_are_taken_with_follow() {
    let Some(lab) = Lab::new() else { return };
    let parent = family(3, 400);
    let outside = Outside::of([parent.0.id()]);
    let run = lab.record_target(&["-p", &parent.pid(), "--follow", "--time", "5s"]).run;
    let mut there = descendants(parent.0.id());
    assert_eq!(there.len(), 3 + 6 + 400);
    there.insert(parent.0.id());
    let watched: BTreeSet<u32> = run.threads.iter().map(|thread| thread.tgid).collect();
    assert_eq!(watched, there, "watched (left) and there (right)");
    assert_eq!(run.threads.len(), there.len(), "each once");
    assert!(run.threads.iter().all(|t| t.alive));
    outside.agrees(&run, Duration::from_millis(4500));
}

#[test]
fn without_follow_the_first_line_says_what_is_not_watched() {
    let Some(lab) = Lab::new() else { return };
    let parent = family(2, 0);
    grown(&parent, 6);
    let recorded = lab.record_target(&["-p", &parent.pid(), "--time", "300ms"]);
    assert_eq!(recorded.run.threads.len(), 1);
    let errors = String::from_utf8_lossy(&recorded.output.stderr).into_owned();
    let first = errors.lines().next().unwrap();
    assert!(first.contains("6 running children are not watched: --follow takes them"), "{first}");
}

#[test]
fn exec_in_a_thread_goes_on_being_watched() {
    let Some(lab) = Lab::new() else { return };
    let began = Instant::now();
    let recorded = lab.record(&[], [program("exec_in_thread")]);
    let took = began.elapsed();
    assert_eq!(recorded.stdout(), "executed\n");
    let run = recorded.run;
    let lives = run.threads.iter().map(|t| Duration::from_nanos(t.accounts.total()));
    assert!(lives.max().unwrap() < took, "{:?}", run.threads);
    let execs: Vec<_> = run.events.iter().filter(|e| e.kind == EventKind::Exec).collect();
    assert_eq!(execs.len(), 2, "{execs:?}");
    // The thread that called exec has run the new program's calls.
    let last = run.threads.iter().max_by_key(|t| t.last_ns).unwrap();
    assert!(last.accounts.iter().any(|(account, _)| account.to_string() == "running:write"));
}

#[test]
fn a_target_that_is_killed_ends_the_recording() {
    let Some(lab) = Lab::beside_others() else { return };
    let target = sleepers(5);
    let mut record = lab.verb("record");
    let mut recorder = Helper::spawn(record.args(["-p", &target.pid()]).stderr(Stdio::null()));
    wait_until("a second stored", || lab.runs_so_far().iter().any(|r| r.threads > 0));
    target.signal(Signal::KILL);
    assert!(wait_for(&mut recorder.0, Duration::from_secs(10)).success());
    let run = lab.run();
    assert_eq!(run.status, RunStatus::Complete);
    assert!(run.end.unwrap().reason.contains(&target.pid()));
    assert_eq!(run.threads.iter().filter(|thread| !thread.alive).count(), 6);
    let killed = run.events.iter().any(|e| e.kind == EventKind::Signal && e.value == 9);
    assert!(killed, "{:?}", run.events);
}

#[test]
fn signals_end_a_recording_cleanly() {
    let Some(lab) = Lab::beside_others() else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let mut target = sleepers(2);
        let mut record = lab.verb("record");
        let mut recorder = Helper::spawn(record.args(["-p", &target.pid()]).stderr(Stdio::null()));
        let runs = if signal == Signal::INT { 1 } else { 2 };
        wait_until("a second stored", || {
            lab.runs_so_far().iter().filter(|r| r.threads > 0).count() == runs
        });
        recorder.signal(signal);
        assert!(wait_for(&mut recorder.0, Duration::from_secs(10)).success());
        assert_eq!(lab.run().status, RunStatus::Complete);
        assert!(target.0.try_wait().unwrap().is_none(), "the target has ended, too");
    }
}

#[test]
fn a_termination_is_passed_on_to_the_command() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut recording = lab.recording(&[], ["sleep", "60"]);
    let mut recorder = Helper::spawn(recording.stderr(Stdio::null()));
    wait_until("a second stored", || lab.runs_so_far().iter().any(|r| r.threads > 0));
    recorder.signal(Signal::TERM);
    assert_eq!(wait_for(&mut recorder.0, Duration::from_secs(10)).code(), Some(143));
    assert_eq!(lab.run().end.unwrap().exit_status, Some(143));
}
