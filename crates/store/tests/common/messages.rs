//! The messages of a run, from a trace and at a socket.

use model::*;

use super::STARTED_NS;

/// Two slow messages, the slower one first, and one of the control group.
pub fn messages() -> Messages {
    let mut histogram = Histogram::new(5);
    (1..2000).for_each(|n| histogram.record(n * n));
    Messages {
        programs: vec![
            TracedProgram {
                program: 0,
                tgid: 100,
                path: "/dev/shm/whylag-0/100-7.trace".into(),
                language: "C".into(),
                state: TraceState::Crashed,
                flows: vec![MessageFlow {
                    flow: 1,
                    name: "order".into(),
                    points: vec!["journalled".into()],
                    publishes: vec!["fill".into()],
                    threshold_ns: 100_000,
                    begun: u64::MAX,
                    ..MessageFlow::default()
                }],
                unfinished: vec![UnfinishedMessage {
                    flow: 1,
                    id: u64::MAX,
                    tid: 101,
                    t0_ns: 1,
                    logic_start_ns: 2,
                    last_ns: 3,
                    last_name: Some("fill".into()),
                    read_ns: 9,
                }],
                ..TracedProgram::default()
            },
            TracedProgram {
                program: 1 << 16,
                tgid: 100,
                language: "sockets".into(),
                flows: vec![MessageFlow {
                    flow: 1,
                    name: "port 6379".into(),
                    kind: FlowKind::Request,
                    ..MessageFlow::default()
                }],
                ..TracedProgram::default()
            },
        ],
        seconds: vec![
            MessageSecond {
                program: 0,
                flow: 1,
                metric: MessageMetric::ToPublish(0),
                start_ns: STARTED_NS,
                histogram: histogram.clone(),
            },
            MessageSecond {
                program: 1 << 16,
                flow: 1,
                metric: MessageMetric::Answering,
                start_ns: STARTED_NS,
                histogram,
            },
        ],
        slow: vec![
            message(9, None, 4_100_000),
            Message {
                program: 1 << 16,
                at_socket: Some(at_socket()),
                ..message(10, None, 400_000)
            },
            message(8, None, 300_000),
        ],
        slow_count: 3,
        fast: vec![message(7, Some(0), 40_000)],
        calls: Vec::new(),
    }
}

pub fn message(id: u64, sample: Option<u32>, ns: u64) -> Message {
    Message {
        program: 0,
        flow: 1,
        id,
        sample,
        t0_ns: STARTED_NS,
        logic_start_ns: STARTED_NS + 10,
        end_ns: STARTED_NS + ns,
        tid: 101,
        points: vec![MessagePoint { point: 0, time_ns: STARTED_NS + 5, tid: Some(102) }],
        published: vec![MessagePublish { publish: Some(0), time_ns: STARTED_NS + 20 }],
        publishes: 1,
        longest_gap_ns: 10,
        depth: None,
        ahead: vec![MessageAhead { flow: 1, id: 3, logic_start_ns: 4, end_ns: 5 }],
        kept_ns: 10_000,
        at_socket: None,
    }
}

/// Handed over, and with a call whose peer was recorded.
fn at_socket() -> AtSocket {
    let answer = Answer {
        program: 1 << 16,
        tid: 9,
        arrived_ns: 2,
        read_ns: 3,
        served_ns: 4,
        calls: Vec::new(),
    };
    let call = Call {
        program: 1 << 16,
        tgid: 100,
        tid: 103,
        link: u64::MAX,
        cause: 7,
        sent_ns: 1,
        arrived_ns: 5,
        read_ns: 6,
        answer: Some(answer),
    };
    let handed = Some(HandOver { tid: 103, time_ns: Some(STARTED_NS + 15) });
    AtSocket { tgid: 100, link: u64::MAX, is_first: true, handed, calls: vec![call] }
}
