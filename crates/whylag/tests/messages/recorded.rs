//! Programs that trace while they are recorded: what slow messages waited for against what the program
//! knows, and programs that begin to trace later, or are killed.

use std::collections::HashMap;

use model::{Message, TraceState};
use serde_json::Value;

use crate::common::disturbance::undisturbed;
use crate::common::programs::program;
use crate::common::{Lab, Recorded};
use crate::{list, path, slow_by_id, traces, truths};

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
    // After a stall of the machine more messages are slow than have room, and each of them is counted.
    let kept = slow.len() as u64;
    let without_room = program.missed + flow.slow - kept;
    assert!(flow.slow > 200 || flow.slow == kept, "there was room for {}", flow.slow);
    let mut missing = 0;
    for truth in truths(&output.stdout).iter().filter(|truth| truth.total >= 1_500_000) {
        // The first ones ended before the trace was found, and its threshold known.
        let Some((place, message)) = slow.get(&truth.id) else {
            // The program may have lost its CPU after the end, before it looked at its clock.
            let may_be_fast = truth.part < 1_000_000 && !is_quiet;
            missing += u64::from(truth.id >= found && !may_be_fast);
            assert!(missing <= without_room, "order {} is missing", truth.id);
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
            // It is held for 4 ms. On a busy machine it may be free before this thread has a CPU; how
            // long this thread waits for a CPU afterwards has no limit.
            "mutex" => assert!(
                !is_quiet || without_room > 0 || mutex > 2_000_000,
                "order {}: {gap}",
                truth.id
            ),
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
    // What the hypervisor stole is in no interval, and the thread's clock leaves it out, too.
    let stolen: u64 = run.sums.cpus.iter().map(|cpu| cpu.stolen_ns).sum();
    let most = hidden.min(2) + if stolen > 0 { 2 } else { 0 };
    assert!(unreported.len() as u64 <= most, "{hidden} hidden, {stolen} stolen: {unreported:#?}");
    let enough = 4 - missing.min(3);
    let is_enough = compared.len() == 3 && compared.values().all(|n| u64::from(*n) >= enough);
    assert!(is_enough, "{compared:?}, {missing} without room");

    // Whoever came while an order like 149 was worked on waited behind it.
    let is_slow = |id: &u64| slow.contains_key(id) && slow.contains_key(&(id + 2));
    let head = (149..1000).step_by(150).find(is_slow).unwrap();
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
