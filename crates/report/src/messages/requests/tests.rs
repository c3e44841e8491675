use model::histogram::PRECISION_KERNEL;
use model::{Answer, Message, MessageSecond, ServiceRole};

use super::*;
use crate::sample;

const US: u64 = 1_000;
const PORT: u32 = 1 << 16;

fn program(program: u32, name: &str, kind: FlowKind, ended: u64) -> TracedProgram {
    let name = name.to_owned();
    let flow = MessageFlow { flow: 1, name, kind, ended, ..MessageFlow::default() };
    TracedProgram { program, tgid: 77, flows: vec![flow], ..TracedProgram::default() }
}

fn second(program: u32, metric: MessageMetric, ns: u64) -> MessageSecond {
    let mut histogram = Histogram::new(PRECISION_KERNEL);
    (0..3_000).for_each(|_| histogram.record(ns));
    MessageSecond { program, flow: 1, metric, start_ns: 0, histogram }
}

/// One of the sample that is kept of all.
fn kept(tid: u32) -> Message {
    Message {
        program: PORT,
        flow: 1,
        id: u64::from(tid),
        sample: Some(0),
        t0_ns: 0,
        logic_start_ns: 20 * US,
        end_ns: 50 * US,
        tid,
        points: Vec::new(),
        published: Vec::new(),
        publishes: 0,
        longest_gap_ns: 0,
        depth: None,
        ahead: Vec::new(),
        kept_ns: 0,
        at_socket: None,
    }
}

fn served() -> Run {
    let mut run = sample::run();
    run.messages.fast = vec![kept(81), kept(82)];
    run.messages.programs = vec![
        program(PORT, "port 6379", FlowKind::Request, 3_000),
        program(PORT + 1, "10.0.0.7:5432", FlowKind::Call, 3_000),
        program(PORT + 2, "port 80", FlowKind::Request, 0),
    ];
    run.messages.seconds = vec![
        second(PORT, MessageMetric::Total, 50 * US),
        second(PORT, MessageMetric::Infrastructure, 20 * US),
        second(PORT, MessageMetric::Logic, 30 * US),
        second(PORT + 1, MessageMetric::Total, 10 * US),
    ];
    let port = Service {
        program: PORT,
        tgid: 77,
        role: ServiceRole::Server,
        name: "port 6379".into(),
        connections: 20,
        several: 3,
        pushed: 1,
        left_out: 0,
        open: 2,
        packets: 0,
        given_up: 0,
        packets_since_ns: None,
        peer: None,
        calls_at_once: Vec::new(),
        oldest_ns: Some(run.header.started_ns),
    };
    let postgres = model::Peer { tgid: 81, comm: "postgres".into() };
    let peer = Service { program: PORT + 1, peer: Some(postgres), ..port.clone() };
    run.sums.services = vec![port, peer];
    run
}

#[test]
fn ports_and_peers_are_told_within_80_columns() {
    let run = served();
    let text = sample::written(|out| write(out, &run, &Style::default()));
    sample::assert_fits(&text, 80);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "port 6379 (",
        "3,000 requests",
        "20 connections",
        "2 threads read them, and had one to work on for 2.2 % of the time",
        "3 came before the one before on their connection was answered",
        "1 send that no request asked for",
        "2 had no answer at the end, the oldest came",
        "until answered 3,000",
        "in the socket's queue 3,000",
        "worked on 3,000",
        "Calls, until the answer arrived",
        "10.0.0.7:5432: postgres (pid 81)",
    ] {
        assert!(flat.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("port 80"), "nobody asked there\n{text}");
    assert!(are_all(&run));
    assert_eq!(noun(&run, "port 6379").noun, "slow request");
}

#[test]
fn calls_are_told_with_what_the_peer_did_however_deep_they_lead() {
    let run = served();
    let mut call: Option<Call> = None;
    for _ in 0..100 {
        let calls = call.take().into_iter().collect();
        let answer = Answer {
            program: PORT,
            tid: 9,
            arrived_ns: 2 * US,
            read_ns: 5 * US,
            served_ns: 9 * US,
            calls,
        };
        call = Some(Call {
            program: PORT + 1,
            tgid: 77,
            tid: 82,
            link: 1,
            cause: 0,
            sent_ns: US,
            arrived_ns: 11 * US,
            read_ns: 12 * US,
            answer: Some(answer),
        });
    }
    let calls: Vec<Call> = call.into_iter().collect();
    let style = Style::default();
    let text = sample::written(|out| write_calls_of(out, &run, &calls, 3, &style));
    sample::assert_fits(&text, 80);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = "called 10.0.0.7:5432: 10.0 us, then the answer waited 1.00 us to be read; there \
                3.00 us in the socket's queue, 4.00 us worked on by";
    assert!(flat.contains(shown), "{text}");
}

#[test]
fn machines_get_the_same_figures() {
    let requests = crate::messages::json::requests(&served());
    assert_eq!(requests[0]["service"]["connections"], 20);
    assert_eq!(requests[0]["metrics"]["until answered"]["n"], 3_000);
    assert_eq!(requests[1]["flow"]["kind"], "call");
}
