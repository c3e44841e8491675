//! Programs that trace their messages: what whylag says of a slow one against what the program
//! itself knows, and what it does with files that were left behind, or that lie.

#![allow(clippy::unwrap_used, reason = "this is the test")]

mod common;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::disturbance::undisturbed;
use common::programs::program;
use common::{Lab, Recorded, whylag};
use model::{Message, Run, TraceState};
use serde_json::Value;
use tempfile::TempDir;

/// What the program printed of a slow message.
struct Truth {
    id: u64,
    kind: String,
    /// Receipt to just behind the end.
    total: u64,
    /// The slow part of the logic, by the same clock.
    part: u64,
    /// CPU time of that part.
    ran: u64,
}

fn truths(output: &[u8]) -> Vec<Truth> {
    let text = String::from_utf8_lossy(output);
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words[place].parse().unwrap();
        let kind = words[1].to_owned();
        Truth { id: number(0), kind, total: number(2), part: number(3), ran: number(4) }
    };
    text.lines().map(of_line).collect()
}

/// A folder for traces, in memory as they have to be.
fn traces() -> TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn path(folder: &TempDir) -> String {
    folder.path().to_str().unwrap().to_owned()
}

fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// `traced MESSAGES FOLDER [CRASH]`, its trace in `traces`.
fn traced(lab: &Lab, traces: &TempDir, messages: u32, crash: Option<u32>) -> Command {
    let mut command = Command::new(program("traced"));
    command.arg(messages.to_string()).arg(lab.folder.path());
    command.args(crash.map(|id| id.to_string())).env("WHYLAG_TRACE_DIR", traces.path());
    command
}

/// The trace of a program, once it is there and complete enough to be listed.
fn trace_in(folder: &TempDir) -> PathBuf {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        if let Some(path) = names.find(|path| path.extension().is_some_and(|e| e == "trace")) {
            return path;
        }
        assert!(Instant::now() < deadline, "no trace in {}", folder.path().display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn list(traces: &TempDir) -> Vec<Value> {
    let output = whylag()
        .args(["trace", "ls", "--json"])
        .env("WHYLAG_TRACE_DIR", traces.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let here = path(traces);
    all.into_iter().filter(|file| file["path"].as_str().unwrap().starts_with(&here)).collect()
}

/// The place among the slow ones, from 1, and the message.
fn slow_by_id(run: &Run) -> HashMap<u64, (usize, &Message)> {
    let slow = run.messages.slow.iter().enumerate();
    slow.map(|(place, message)| (message.id, (place + 1, message))).collect()
}

fn sum(values: &Value, key: &str) -> u64 {
    values.as_array().unwrap().iter().map(|value| value[key].as_u64().unwrap()).sum()
}

/// Time in accounts whose text begins with one of these.
fn time_in(part: &Value, accounts: &[&str]) -> u64 {
    let is_one = |time: &&Value| {
        let account = time["account"].as_str().unwrap_or("");
        accounts.iter().any(|prefix| account.starts_with(prefix))
    };
    let times = part["time"].as_array().unwrap().iter().filter(is_one);
    times.map(|time| time["ns"].as_u64().unwrap()).sum()
}

/// The first message with short intervals: from there on the recorder keeps them for all.
fn followed_from(slow: &HashMap<u64, (usize, &Message)>) -> u64 {
    let followed = slow.values().filter(|(_, message)| message.kept_ns < 1_000_000);
    followed.map(|(_, message)| message.id).min().unwrap()
}

#[test]
fn slow_messages_have_the_breakdown_that_the_program_knows() {
    let Some(lab) = Lab::new() else { return };
    let traces = traces();
    let record = || {
        let folder = lab.folder.path().to_str().unwrap();
        let mut record = lab.recording(&[], [program("traced").to_str().unwrap(), "1000", folder]);
        let output = record.env("WHYLAG_TRACE_DIR", traces.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Recorded { run: lab.run(), output }
    };
    let (Recorded { run, output }, figures) = undisturbed(record, |recorded| Some(&recorded.run));
    let is_quiet = figures.judge("what slow messages waited for is little but the fault");
    let program = &run.messages.programs[0];
    assert_eq!((program.language.as_str(), program.state), ("C", TraceState::Closed));
    let flow = &program.flows[0];
    assert_eq!((flow.begun, flow.ended, flow.name.as_str()), (1000, 1000, "order"));
    let total = run.messages.histogram(0, 1, model::MessageMetric::Total);
    assert_eq!(total.count(), 1000, "every message is in a histogram");
    assert!(!run.messages.fast.is_empty() && run.messages.fast.len() <= 128);

    let slow = slow_by_id(&run);
    let found = (*slow.keys().min().unwrap()).max(100);
    let followed = followed_from(&slow).max(100);
    let mut compared = HashMap::<String, u32>::new();
    let mut unreported = Vec::new();
    for truth in truths(&output.stdout).iter().filter(|truth| truth.total >= 1_500_000) {
        // The first ones ended before the trace was found, and its threshold known.
        let Some((place, message)) = slow.get(&truth.id) else {
            assert!(truth.id < found, "order {} is missing", truth.id);
            continue;
        };
        let total = message.total_ns();
        assert!(truth.part <= total && total <= truth.total, "order {}", truth.id);
        if message.kept_ns >= 1_000_000 {
            assert!(truth.id < followed, "order {} has no short intervals", truth.id);
            continue;
        }
        let answer = lab.answer("explain", &["--message", &place.to_string(), "--json"]);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let parts = &answer["message"]["parts"];
        assert_eq!(sum(parts, "ns"), total, "order {}: the parts are the message", truth.id);
        for part in parts.as_array().unwrap() {
            assert_eq!(sum(&part["time"], "ns"), part["ns"].as_u64().unwrap(), "{part}");
        }
        let gap = parts.as_array().unwrap().iter().find(|p| p["name"] == "gap to report").unwrap();
        let gap_ns = gap["ns"].as_u64().unwrap();
        assert!(truth.part <= gap_ns, "order {}: {gap}", truth.id);
        // Off the CPU by the kernel's own count, and by the intervals.
        let off = truth.part.saturating_sub(truth.ran);
        let told = time_in(gap, &["blocked:", "runnable:"]);
        // Each sync is several sleeps, some shorter than what is kept.
        let part_of_off = if truth.kind == "fsync" { off / 2 } else { off / 10 };
        let tolerance = part_of_off + 3 * message.kept_ns + (gap_ns - truth.part);
        if told.abs_diff(off) > tolerance {
            unreported.push(format!("order {}: {told} of {off} in {gap}", truth.id));
            continue;
        }
        let (mutex, cpu) = (time_in(gap, &["blocked:futex"]), time_in(gap, &["runnable:"]));
        match truth.kind.as_str() {
            // On a busy machine the mutex may be free before this thread has a CPU.
            "mutex" => assert!(!is_quiet || mutex > 2 * cpu, "order {}: {gap}", truth.id),
            "cpu" => assert!(cpu > 5 * mutex, "order {}: {gap}", truth.id),
            _ => {
                let is_sync = |time: &&Value| time["call"] == "fsync";
                let times = gap["time"].as_array().unwrap().iter().filter(is_sync);
                let synced: u64 = times.map(|time| time["ns"].as_u64().unwrap()).sum();
                assert!(synced * 3 > off, "order {}: {synced} of {off} in {gap}", truth.id);
            }
        }
        *compared.entry(truth.kind.clone()).or_default() += 1;
    }
    // A switch that the host hides from BPF programs is counted, and takes its interval along.
    let hidden =
        run.losses.by_kind().get("wakeups and switches (hidden by the host)").copied().unwrap_or(0);
    assert!(unreported.len() as u64 <= hidden.min(2), "{hidden} hidden: {unreported:#?}");
    assert!(compared.len() == 3 && compared.values().all(|n| *n >= 4), "{compared:?}");

    // Whoever came while an order like 149 was worked on waited behind it.
    let head = (149..1000).step_by(150).find(|id| slow.contains_key(id)).unwrap();
    let (_, waiting) = slow[&(head + 2)];
    let ahead: Vec<u64> = waiting.ahead.iter().map(|message| message.id).collect();
    assert!(ahead.contains(&head), "{waiting:?}");
    let shown = String::from_utf8(lab.answer("show", &[])).unwrap();
    let contrast = shown.find("have more of than").unwrap();
    assert!(shown[contrast..].contains("queued behind earlier messages"), "{shown}");
    assert!(shown.lines().all(|line| line.starts_with("     ") || line.chars().count() <= 80));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("slow (from 1.00 ms on)"), "{told}");
    assert_eq!(list(&traces), Vec::<Value>::new(), "the program removed its trace");
}

#[test]
fn a_program_that_begins_to_trace_later_is_found() {
    let Some(lab) = Lab::new() else { return };
    let traces = traces();
    let line = format!("sleep 0.4; exec {} 300 {}", program("traced").display(), path(&lab.folder));
    let mut record = lab.recording(&[], ["sh", "-c", &line]);
    let output = record.env("WHYLAG_TRACE_DIR", traces.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let run = lab.run();
    assert_eq!(run.messages.programs.len(), 1, "{output:?}");
    assert_eq!(run.messages.programs[0].flows[0].ended, 300);
}

#[test]
fn what_a_killed_program_traced_is_in_its_run_and_its_file_is_removed() {
    let Some(lab) = Lab::new() else { return };
    let traces = traces();
    let line =
        [program("traced").to_str().unwrap(), "1000", &path(&lab.folder), "349"].map(str::to_owned);
    let mut record = lab.recording(&[], line);
    let output = record.env("WHYLAG_TRACE_DIR", traces.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    let run = lab.run();
    let program = &run.messages.programs[0];
    assert_eq!(program.state, TraceState::Crashed);
    let died_in: Vec<u64> = program.unfinished.iter().map(|message| message.id).collect();
    assert_eq!(died_in, [349]);
    assert_eq!(program.flows[0].ended, 349);
    assert_eq!(list(&traces), Vec::<Value>::new(), "{output:?}");
}

#[test]
fn what_a_killed_program_left_is_harvested_and_only_then_removed() {
    let lab = Lab::anywhere();
    let traces = traces();
    let killed = traced(&lab, &traces, 1000, Some(149)).output().unwrap();
    assert!(!killed.status.success());
    let file = trace_in(&traces);
    let listed = list(&traces);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["standing"], "crashed");

    // A store that cannot be written: nothing is lost.
    let harvest = |store: &Path| {
        let mut command = whylag();
        command.arg("--store").arg(store).args(["trace", "harvest"]).arg(&file);
        command.output().unwrap()
    };
    assert!(!harvest(Path::new("/proc/whylag.db")).status.success());
    assert!(file.exists());

    let output = harvest(&lab.store());
    assert!(output.status.success(), "{output:?}");
    assert!(!file.exists());
    let run = lab.run();
    assert_eq!(run.header.target, model::Target::Trace(file.display().to_string()));
    let program = &run.messages.programs[0];
    assert_eq!(program.state, TraceState::Crashed);
    assert_eq!((program.flows[0].ended, program.flows[0].begun >= 150), (149, true));
    assert_eq!(program.unfinished[0].id, 149);
    // By the program: slow ones before the crash are printed.
    for truth in truths(&killed.stdout).iter().filter(|truth| truth.part >= 1_000_000) {
        let (_, message) = slow_by_id(&run)[&truth.id];
        assert!((truth.part..=truth.total).contains(&message.total_ns()));
    }
    let shown = String::from_utf8(lab.answer("show", &[])).unwrap();
    assert!(shown.contains("crashed, or made an exec"), "{shown}");
    let refused = lab.verb("explain").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "nothing was recorded: {refused:?}");
}

#[test]
fn files_that_lie_are_refused_with_the_reason_and_left_alone() {
    let lab = Lab::anywhere();
    let traces = traces();
    let mut command = traced(&lab, &traces, 5000, None);
    let mut child = started(&mut command);
    let live = trace_in(&traces);
    let pid = child.id().to_string();
    let copy = fs::read(&live).unwrap();
    let place = |name: &str, bytes: &[u8]| fs::write(traces.path().join(name), bytes).unwrap();
    place("11-1.trace", b"no trace at all");
    place("12-1.trace", &copy[..copy.len() / 2]);
    let mut version = copy.clone();
    version[8] = 7;
    place("13-1.trace", &version);
    let fifo = Command::new("mkfifo").arg(traces.path().join("14-1.trace")).status().unwrap();
    assert!(fifo.success());
    std::os::unix::fs::symlink(&live, traces.path().join("15-1.trace")).unwrap();
    let reasons: HashMap<String, String> = list(&traces)
        .iter()
        .map(|file| {
            let name = Path::new(file["path"].as_str().unwrap()).file_name().unwrap();
            let text = |key: &str| file[key].as_str().unwrap().to_owned();
            (name.to_str().unwrap().to_owned(), format!("{} {}", text("standing"), text("refused")))
        })
        .collect();
    for (name, reason) in [
        ("11-1.trace", "too few for a header"),
        ("12-1.trace", "the length is not the file's"),
        ("13-1.trace", "has version 7"),
        ("14-1.trace", "no regular file"),
        ("15-1.trace", "no link is followed"),
    ] {
        let told = &reasons[name];
        assert!(told.starts_with("refused ") && told.contains(reason), "{name}: {told}");
        let mut harvest = whylag();
        harvest.arg("--store").arg(lab.store()).args(["trace", "harvest"]);
        let output = harvest.arg(traces.path().join(name)).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(traces.path().join(name).symlink_metadata().is_ok(), "{name} is left alone");
    }
    // A running program's is not harvested, and one that is not its user's is not read.
    let follow = || -> Output { whylag().args(["trace", "-p", &pid]).output().unwrap() };
    let mut harvest = whylag();
    harvest.arg("--store").arg(lab.store()).args(["trace", "harvest"]).arg(&live);
    let output = harvest.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("its program runs"), "{output:?}");
    std::os::unix::fs::chown(&live, Some(54321), None).unwrap();
    let output = follow();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("the file belongs to user 54321"), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_running_program_is_followed_until_it_ends() {
    let lab = Lab::anywhere();
    let traces = traces();
    let mut child = started(&mut traced(&lab, &traces, 1200, None));
    trace_in(&traces);
    let output = whylag()
        .args(["trace", "-p", &child.id().to_string(), "--every", "200ms", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    child.wait().unwrap();
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let end = of("end");
    assert_eq!(end.len(), 1);
    assert_eq!(end[0]["program"]["state"], "closed");
    let counted: u64 = of("interval")
        .iter()
        .filter_map(|line| line["flows"][0]["metrics"]["total"]["n"].as_u64())
        .sum();
    assert!(of("interval").len() >= 4, "{}", of("interval").len());
    assert_eq!(end[0]["program"]["flows"][0]["ended"], counted);
    assert!(counted > 600, "{counted}");
    let slow = of("slow");
    // On a busy machine there are more, of which the slowest are kept: 200 at once.
    let (told, all) = (slow.len() as u64, end[0]["program"]["flows"][0]["slow"].as_u64().unwrap());
    assert!(told == all || (200..all).contains(&told), "{told} of {all}");
    assert!(slow.iter().any(|line| line["message"]["id"].as_u64().unwrap() % 50 == 49));
}

#[test]
fn a_program_in_another_pid_and_mount_namespace_is_found() {
    let lab = Lab::anywhere();
    let folder = path(&lab.folder);
    let inside = format!(
        "mount -t tmpfs none /dev/shm && exec {} 1500 {folder}",
        program("traced").display()
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    let mut child = unshare.arg(inside).stdout(Stdio::null()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    let output = loop {
        let pids = fs::read_to_string(&children).unwrap_or_default();
        if let Some(pid) = pids.split_whitespace().next() {
            let output = whylag().args(["trace", "-p", pid, "--json"]).output().unwrap();
            if output.status.success() {
                break output;
            }
        }
        if child.try_wait().unwrap().is_some_and(|status| !status.success()) {
            println!("skipped: this user may make no namespaces");
            return;
        }
        assert!(Instant::now() < deadline, "not found");
        std::thread::sleep(Duration::from_millis(10));
    };
    child.wait().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(end["program"]["path"].as_str().unwrap().starts_with("/proc/"), "{end}");
    assert!(end["program"]["flows"][0]["ended"].as_u64().unwrap() > 500, "{end}");
    // Threads have the numbers of this namespace: inside they begin at 1.
    let slow: Value = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["kind"] == "slow")
        .unwrap();
    let tid = slow["message"]["tid"].as_u64().unwrap();
    assert!(tid > end["program"]["tgid"].as_u64().unwrap(), "{slow}");
}
