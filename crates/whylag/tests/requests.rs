//! Requests of programs that do not report them: what whylag sees at their sockets against what the
//! programs know themselves.

#![allow(clippy::unwrap_used, reason = "this is the test")]

mod common;

use std::collections::BTreeMap;

use common::disturbance::undisturbed;
use common::programs::{Libc, program, shape};
use common::{Lab, Recorded};
use model::{
    ChainEnd, FlowKind, Histogram, Message, MessageFlow, MessageMetric, Metric, Run, SegmentKind,
    Service,
};

/// A line of the program: what a request was, how long until it was read, and until it was answered.
struct Truth {
    kind: String,
    queued_ns: u64,
    total_ns: u64,
    tid: u32,
}

fn truths(output: &[u8]) -> Vec<Truth> {
    let text = String::from_utf8_lossy(output);
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words[place].parse::<u64>().unwrap();
        let tid = number(3) as u32;
        Truth { kind: words[0].to_owned(), queued_ns: number(1), total_ns: number(2), tid }
    };
    text.lines().map(of_line).collect()
}

/// The only flow of this kind: number of its program, flow.
fn flow(run: &Run, kind: FlowKind) -> (u32, &MessageFlow) {
    let flows = run
        .messages
        .programs
        .iter()
        .flat_map(|program| program.flows.iter().map(move |flow| (program.program, flow)));
    let found: Vec<_> = flows.filter(|(_, flow)| flow.kind == kind && flow.ended > 0).collect();
    assert_eq!(found.len(), 1, "{:?}", run.messages.programs);
    found[0]
}

fn values(run: &Run, kind: FlowKind, metric: MessageMetric) -> Histogram {
    let (program, flow) = flow(run, kind);
    run.messages.histogram(program, flow.flow, metric)
}

fn service(run: &Run, kind: FlowKind) -> &Service {
    let (program, _) = flow(run, kind);
    run.sums.services.iter().find(|service| service.program == program).unwrap()
}

fn record(lab: &Lab, arguments: &[&str]) -> Recorded {
    let words = [program("requests").to_str().unwrap().to_owned()];
    lab.record(&[], words.into_iter().chain(arguments.iter().map(|&word| word.to_owned())))
}

/// How far a figure may be from the program's own, whose clock also runs while the thread that reads it
/// waits for a CPU. A part of the way of a request that was left out takes more than half away.
const NEAR: f64 = 0.3;

/// The value below which this part of them is.
fn quantile(values: impl Iterator<Item = u64>, q: f64) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values[((values.len() as f64 * q).ceil() as usize).max(1) - 1]
}

#[track_caller]
fn assert_near(seen: u64, truth: u64, part: f64, what: &str) {
    let least = (truth as f64 * (1.0 - part)) as u64;
    let most = (truth as f64 * (1.0 + part)) as u64;
    assert!((least..=most).contains(&seen), "{what}: seen {seen} ns, the program {truth} ns");
}

/// Every request is counted, and none twice. A packet that is read before it could be noted may be taken
/// for the next one.
fn assert_counted(total: &Histogram, truths: &[Truth], are_packets: bool) {
    let all = truths.len() as u64;
    let least = if are_packets { all - all / 100 } else { all };
    assert!((least..=all).contains(&total.count()), "{} of {all}", total.count());
}

/// One thread for all: behind a long request others wait in the sockets' queues.
fn one_thread(lab: &Lab, kind: &str, path: Option<&str>) {
    let arguments: Vec<&str> = [kind, "100"].into_iter().chain(path).collect();
    let again = || {
        path.map(std::fs::remove_file);
        record(lab, &arguments)
    };
    let (Recorded { run, output }, figures) = undisturbed(again, |recorded| Some(&recorded.run));
    let truths = truths(&output.stdout);
    let total = values(&run, FlowKind::Request, MessageMetric::Total);
    let queued = values(&run, FlowKind::Request, MessageMetric::Infrastructure);
    let worked = values(&run, FlowKind::Request, MessageMetric::Logic);
    assert_counted(&total, &truths, kind == "packets");
    assert_eq!((queued.count(), worked.count()), (total.count(), total.count()));
    assert_eq!(queued.sum() + worked.sum(), total.sum(), "the parts are the whole");
    let connections = if kind == "packets" { 1 } else { 8 };
    assert_eq!(service(&run, FlowKind::Request).connections, connections);
    // The program's clock starts before the request is sent, and stops after the answer was.
    let sum = |of: fn(&Truth) -> u64| truths.iter().map(of).sum::<u64>();
    assert!(total.sum() <= sum(|truth| truth.total_ns));
    assert!(queued.sum() <= sum(|truth| truth.queued_ns));
    assert_slow(lab, &run);
    if !figures.judge("times of requests are those that the program measures") {
        return;
    }
    for q in [0.5, 0.99] {
        let truth = quantile(truths.iter().map(|truth| truth.total_ns), q);
        assert_near(total.quantile(q).unwrap(), truth, NEAR, &format!("quantile {q}"));
    }
    assert_near(queued.sum(), sum(|truth| truth.queued_ns), NEAR, "in the sockets' queues");
}

/// Slow requests are kept whole, and explained one by one.
fn assert_slow(lab: &Lab, run: &Run) {
    let slowest = run.messages.slow.first().expect("a slow request");
    assert!(slowest.total_ns() >= 20_000_000, "{slowest:?}");
    assert!(!run.messages.fast.is_empty(), "a control group");
    let text = String::from_utf8(lab.answer("explain", &["--request", "1"])).unwrap();
    for part in ["request", "in the socket's queue", "worked on"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let shown = String::from_utf8(lab.answer("show", &[])).unwrap();
    for part in ["Requests, as sockets show them", "connection", "until answered"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let answer = lab.explain();
    let requests = answer["requests"].as_array().unwrap();
    let of_it = requests.iter().find(|one| one["flow"]["kind"] == "request").unwrap();
    assert_eq!(of_it["metrics"]["until answered"]["n"], of_it["flow"]["ended"]);
}

#[test]
fn requests_of_an_event_loop_are_those_that_it_answers() {
    let Some(lab) = Lab::new() else { return };
    one_thread(&lab, "loop", None);
    let run = lab.run();
    let turns = run.seconds.iter().filter(|second| second.metric == Metric::LoopTurn);
    let longest = turns.filter_map(|second| second.histogram.max()).max();
    assert!(longest.unwrap() >= 20_000_000, "a turn with a long request in it");
}

#[test]
fn requests_over_af_unix_are_seen_the_same_way() {
    let Some(lab) = Lab::new() else { return };
    let path = lab.folder.path().join("requests.sock");
    let path = path.to_str().unwrap().to_owned();
    one_thread(&lab, "loop", Some(&path));
    let run = lab.run();
    assert_eq!(flow(&run, FlowKind::Request).1.name, path);
}

#[test]
fn packets_of_many_peers_on_one_socket_are_requests() {
    let Some(lab) = Lab::new() else { return };
    one_thread(&lab, "packets", None);
    assert!(flow(&lab.run(), FlowKind::Request).1.name.starts_with("UDP port "));
}

#[test]
fn packets_that_are_worked_on_at_once_have_their_own_times() {
    let Some(lab) = Lab::new() else { return };
    let words = || [program("udp_pool").to_str().unwrap().to_owned(), "100".into()];
    let (Recorded { run, output }, figures) =
        undisturbed(|| lab.record(&[], words()), |recorded| Some(&recorded.run));
    let truths = truths(&output.stdout);
    let total = values(&run, FlowKind::Request, MessageMetric::Total);
    assert_eq!(truths.len(), 800);
    assert_counted(&total, &truths, true);
    let sum = truths.iter().map(|truth| truth.total_ns).sum::<u64>();
    assert!(total.sum() <= sum, "{} of {sum} ns", total.sum());
    assert!(total.sum() >= sum / 10 * 8, "{} of {sum} ns", total.sum());
    if !figures.judge("times of requests are those that the program measures") {
        return;
    }
    for q in [0.5, 0.9] {
        let truth = quantile(truths.iter().map(|truth| truth.total_ns), q);
        assert_near(total.quantile(q).unwrap(), truth, NEAR, &format!("quantile {q}"));
    }
    let answer = lab.explain();
    assert_eq!(answer["findings"][0]["cause"], "worker-pool-full", "{}", answer["findings"]);
}

#[test]
fn a_call_leads_to_what_its_peer_did_if_that_is_recorded() {
    let Some(lab) = Lab::new() else { return };
    let words = [program("requests").to_str().unwrap().to_owned(), "call".into(), "20".into()];
    let Recorded { run, .. } = lab.record(&["--follow"], words);
    let kept = run.messages.slow.iter().chain(&run.messages.fast);
    let calls = kept.filter_map(|request| {
        let at = request.at_socket.as_ref()?;
        Some((request, at.calls.first()?, at.calls.first()?.answer.as_ref()?))
    });
    let calls: Vec<_> = calls.collect();
    assert!(!calls.is_empty(), "{:?}", run.messages.slow.first());
    for (request, call, answer) in calls {
        let times = [
            request.logic_start_ns,
            call.sent_ns,
            answer.arrived_ns,
            answer.read_ns,
            answer.served_ns,
            call.arrived_ns,
            call.read_ns,
            request.end_ns,
        ];
        assert!(times.is_sorted(), "{times:?}");
        assert!(answer.served_ns - answer.read_ns >= 12_000_000, "the peer naps for 12 ms");
        assert_ne!(answer.tid, request.tid);
    }
    let with_call = run.messages.slow.iter().position(|slow| {
        slow.at_socket.as_ref().is_some_and(|at| at.calls.iter().any(|call| call.answer.is_some()))
    });
    let Some(place) = with_call else { return };
    let number = (place + 1).to_string();
    let text = String::from_utf8(lab.answer("explain", &["--request", &number])).unwrap();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("called 127.0.0.1:") && flat.contains("; there "), "{text}");
}

/// 20 connections, one after the other, with three requests each, which take 3 ms.
const CONNECTIONS: &str = "
import os, socket, time
server = socket.create_server(('127.0.0.1', 0))
if os.fork() == 0:
    for _ in range(20):
        client = socket.create_connection(server.getsockname())
        for _ in range(3):
            client.sendall(b'?')
            client.recv(1)
        client.close()
    os._exit(0)
for _ in range(20):
    connection, _ = server.accept()
    while connection.recv(1):
        time.sleep(0.003)
        connection.sendall(b'!')
    connection.close()
os.wait()
";

#[test]
fn the_first_request_of_a_connection_is_known_as_that() {
    let Some(lab) = Lab::new() else { return };
    let every_one = ["--follow", "--slower-than", "1ms"];
    let run = lab.record(&every_one, ["python3", "-c", CONNECTIONS]).run;
    let mut kept: Vec<&Message> = run.messages.slow.iter().chain(&run.messages.fast).collect();
    kept.sort_by_key(|message| message.t0_ns);
    let mut connections = BTreeMap::<u64, Vec<bool>>::new();
    for at in kept.into_iter().filter_map(|message| message.at_socket.as_ref()) {
        connections.entry(at.link).or_default().push(at.is_first);
    }
    let whole: Vec<_> = connections.values().filter(|requests| requests.len() == 3).collect();
    assert!(whole.len() >= 10, "{connections:?}");
    assert!(whole.iter().all(|requests| **requests == [true, false, false]), "{whole:?}");
}

/// Each of them needs dozens of histograms, and has ended before whylag looks for the first time.
#[test]
fn a_server_that_a_script_of_many_processes_starts_has_its_port() {
    let Some(lab) = Lab::new() else { return };
    let server = program("requests").to_str().unwrap().to_owned();
    let script = r#"for i in $(seq 150); do ls / > /dev/null; done; exec "$0" loop 20"#;
    let words = ["sh", "-c", script, server.as_str()];
    let Recorded { run, output } = lab.record(&["--follow"], words);
    let truths = truths(&output.stdout);
    let name = &flow(&run, FlowKind::Request).1.name;
    assert!(name.starts_with("port "), "{name}");
    let total = values(&run, FlowKind::Request, MessageMetric::Total);
    assert_eq!(total.count(), truths.len() as u64);
}

#[test]
fn a_request_that_another_thread_answers_is_followed_to_it() {
    let Some(lab) = Lab::new() else { return };
    let Recorded { run, output } = record(&lab, &["handed", "20"]);
    let truths = truths(&output.stdout);
    let total = values(&run, FlowKind::Request, MessageMetric::Total);
    assert_eq!(total.count(), truths.len() as u64);
    let workers: Vec<u32> = truths.iter().map(|truth| truth.tid).collect();
    let kept: Vec<&Message> = run.messages.slow.iter().chain(&run.messages.fast).collect();
    assert!(!kept.is_empty());
    for message in &kept {
        let handed = message.handed().expect("the thread that reads never answers");
        assert!(workers.contains(&handed.tid) && !workers.contains(&message.tid), "{message:?}");
        let parts = message.segments();
        let last = parts.iter().rfind(|part| !part.is_infrastructure()).unwrap();
        assert_eq!(last.tid, Some(handed.tid), "{parts:?}");
        assert_eq!(parts.iter().map(|part| part.ns()).sum::<u64>(), message.total_ns());
    }
    // Where the worker slept, the wake-up is the hand-over.
    let followed = kept.iter().filter(|message| message.handed().unwrap().time_ns.is_some());
    for message in followed {
        let parts = message.segments();
        let by_worker = parts.iter().find(|part| part.tid == message.handed().map(|to| to.tid));
        assert!(by_worker.unwrap().ns() >= 8_000_000, "it naps for 8 ms: {parts:?}");
        assert!(parts.iter().any(|part| part.kind == SegmentKind::ToHandOver), "{parts:?}");
    }
}

#[test]
fn slow_is_what_the_user_says() {
    let Some(lab) = Lab::new() else { return };
    let words = [program("requests").to_str().unwrap().to_owned(), "loop".into(), "50".into()];
    let Recorded { run, output } = lab.record(&["--slower-than", "5ms"], words);
    let (_, flow) = flow(&run, FlowKind::Request);
    assert_eq!(flow.threshold_ns, 5_000_000);
    assert!(run.messages.slow.iter().all(|slow| slow.total_ns() >= 5_000_000));
    let slow = truths(&output.stdout).iter().filter(|truth| truth.total_ns >= 6_000_000).count();
    assert!(slow > 0 && run.messages.slow_count > 0, "{slow} by the program's clock");
    // Intervals in them are kept from a tenth of that on.
    let kept_ns = run.messages.slow.iter().map(|slow| slow.kept_ns).min();
    assert_eq!(kept_ns, Some(500_000));
}

#[test]
fn several_at_once_on_a_connection_are_counted_as_such() {
    let Some(lab) = Lab::new() else { return };
    let Recorded { run, output } = record(&lab, &["ahead", "40"]);
    let n = truths(&output.stdout).len() as u64;
    let total = values(&run, FlowKind::Request, MessageMetric::Total);
    assert_eq!(total.count(), n, "each is read and answered on its own");
    let several = service(&run, FlowKind::Request).several;
    assert!(several > n / 2, "{several} of {n}: four are always on their way");
}

#[test]
fn long_polls_are_not_called_slow() {
    let Some(lab) = Lab::new() else { return };
    let Recorded { run, output } = record(&lab, &["held", "5"]);
    let truths = truths(&output.stdout);
    let held = values(&run, FlowKind::Request, MessageMetric::Held);
    let polls = truths.iter().filter(|truth| truth.kind == "held").count() as u64;
    assert_eq!((held.count(), polls), (5, 5));
    assert!(held.min().unwrap() >= 150_000_000);
    let total = values(&run, FlowKind::Request, MessageMetric::Total);
    assert_eq!(total.count(), 5, "the others");
    assert!(run.messages.slow.iter().all(|message| message.total_ns() < 150_000_000));
}

/// What the shape prints of itself: `polls=104`.
fn printed(recorded: &Recorded, name: &str) -> u64 {
    let words = recorded.stdout().split_whitespace();
    let value = words.filter_map(|word| word.strip_prefix(name)).next();
    value.unwrap().parse().unwrap()
}

#[test]
fn long_polls_that_another_request_ends_are_not_called_slow() {
    let Some(lab) = Lab::new() else { return };
    let program = shape("healthy_long_poll", Libc::Glibc);
    let recorded = lab.record(&["--follow"], [program.as_os_str(), "1".as_ref()]);
    let held = values(&recorded.run, FlowKind::Request, MessageMetric::Held).count();
    let polls = printed(&recorded, "polls=");
    assert!(held <= polls && held >= polls / 2, "{held} of {polls}: some waited for a CPU");
}

/// A worker thread of its own works for them, or they wait for a lock.
#[test]
fn requests_that_others_of_the_process_let_go_on_are_slow() {
    let Some(lab) = Lab::new() else { return };
    let program = shape("handed_request", Libc::Glibc);
    let recorded = lab.record(&["--follow"], [program.as_os_str(), "1".as_ref()]);
    let held = values(&recorded.run, FlowKind::Request, MessageMetric::Held).count();
    let total = values(&recorded.run, FlowKind::Request, MessageMetric::Total);
    let slow = printed(&recorded, "slow=");
    assert!(held <= slow / 4, "{held} of {slow} seem to be held open");
    let long = total.ranges().filter(|(low, ..)| *low >= 25_000_000).map(|(.., n)| n).sum::<u64>();
    assert!(long >= slow / 4 * 3, "{long} of {slow}");
}

/// It is a child, which is not recorded; packets over loopback come from it all the same.
#[test]
fn a_server_of_this_host_that_is_not_recorded_is_no_other_host() {
    let Some(lab) = Lab::new() else { return };
    let program = shape("tcp_sleep", Libc::Glibc);
    let recorded = lab.record(&[], [program.as_os_str(), "1".as_ref()]);
    assert!(recorded.run.threads.iter().all(|thread| thread.comm != "geocoder"));
    let waits = || recorded.run.sums.waits.iter().filter(|wait| wait.asked);
    let all: u64 = waits().map(|wait| wait.ns).sum();
    let by_server = waits().filter(|wait| wait.waker_comm == "geocoder");
    let unwatched: u64 = by_server.map(|wait| wait.ends_in(|end| end == ChainEnd::Unwatched)).sum();
    // An interrupt on the way may hide what the softirq is for.
    assert!(unwatched > all / 2 && all > 300_000_000, "{unwatched} of {all}");
}

/// They take turns of 5 ms, between which an event loop rests. Where a request comes just before the
/// time is up, it ends the loop's last rest, and the answer looks as if nobody worked on it: the
/// more, the later the loop gets its CPU.
#[test]
fn requests_that_wait_for_times_of_their_server_are_slow() {
    let Some(lab) = Lab::new() else { return };
    let program = shape("async_turn", Libc::Glibc);
    let recorded = lab.record(&["--follow"], [program.as_os_str(), "1".as_ref()]);
    let held = values(&recorded.run, FlowKind::Request, MessageMetric::Held).count();
    let total = values(&recorded.run, FlowKind::Request, MessageMetric::Total).count();
    let slow = printed(&recorded, "slow=");
    assert!(held < slow / 2 && total > slow / 2, "{held} of {slow} seem to be held open");
}

#[test]
fn calls_take_as_long_as_the_peer() {
    let Some(lab) = Lab::new() else { return };
    let Recorded { run, output } = record(&lab, &["call", "10"]);
    let truths = truths(&output.stdout);
    let calls: Vec<u64> =
        truths.iter().filter(|truth| truth.kind == "call").map(|truth| truth.queued_ns).collect();
    let seen = values(&run, FlowKind::Call, MessageMetric::Total);
    assert_eq!(seen.count(), calls.len() as u64);
    assert!(seen.min().unwrap() >= 12_000_000, "the peer naps for 12 ms");
    assert!(seen.sum() <= calls.iter().sum::<u64>());
    assert!(flow(&run, FlowKind::Call).1.name.starts_with("127.0.0.1:"));
}
