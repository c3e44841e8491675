//! Requests as sockets show them.

use model::histogram::PRECISION_KERNEL;
use model::{
    AtSocket, FlowKind, Histogram, Message, MessageFlow, MessageMetric, MessagePublish,
    MessageSecond, Run, Service, ServiceRole, TracedProgram,
};

pub const MS: u64 = 1_000_000;

/// Number of the port in [`served`], and of the peer in [`calls`].
pub const PORT: u32 = 70_000;
pub const PEER: u32 = 70_001;

/// A request on connection `link` that came at `at`, was read by thread `tid` after `queued`, and
/// answered after `worked`; all in ms.
pub fn request(link: u64, tid: u32, at: u64, queued: u64, worked: u64) -> Message {
    let (t0_ns, read_ns) = (at * MS, (at + queued) * MS);
    let end_ns = read_ns + worked * MS;
    Message {
        program: PORT,
        flow: 1,
        id: at * 100 + link,
        sample: None,
        t0_ns,
        logic_start_ns: read_ns,
        end_ns,
        tid,
        points: Vec::new(),
        published: vec![MessagePublish { publish: Some(0), time_ns: end_ns }],
        publishes: 1,
        longest_gap_ns: 0,
        depth: None,
        ahead: Vec::new(),
        kept_ns: 100_000,
        at_socket: Some(AtSocket { tgid: 10, link, ..AtSocket::default() }),
    }
}

/// Process 10 answered these at port 80, all of them kept.
pub fn served(run: Run, requests: Vec<Message>) -> Run {
    served_at(run, PORT, "port 80", requests)
}

/// Process 10 answered these at this port as well, which has this number.
pub fn served_at(mut run: Run, port: u32, name: &str, mut requests: Vec<Message>) -> Run {
    requests.iter_mut().for_each(|request| request.program = port);
    flow(&mut run, port, name, FlowKind::Request, requests.len());
    let queued = requests.iter().map(Message::infrastructure_ns);
    second(&mut run, port, MessageMetric::Infrastructure, queued);
    second(&mut run, port, MessageMetric::Logic, requests.iter().map(Message::logic_ns));
    second(&mut run, port, MessageMetric::Total, requests.iter().map(Message::total_ns));
    run.messages.slow.extend(requests);
    run.messages.slow.sort_by_key(|request| std::cmp::Reverse(request.total_ns()));
    run.messages.slow_count = run.messages.slow.len() as u64;
    run
}

/// Process 10 made `n` calls of `ns` to a peer.
pub fn calls(mut run: Run, n: usize, ns: u64) -> Run {
    flow(&mut run, PEER, "127.0.0.1:5432", FlowKind::Call, n);
    second(&mut run, PEER, MessageMetric::Total, std::iter::repeat_n(ns, n));
    run.sums.services.push(Service {
        program: PEER,
        tgid: 10,
        role: ServiceRole::Client,
        name: "127.0.0.1:5432".into(),
        connections: 1,
        several: 0,
        pushed: 0,
        left_out: 0,
        open: 0,
        peer: Some(model::Peer { tgid: 90, comm: "postgres".into() }),
        calls_at_once: Vec::new(),
        packets: 0,
        given_up: 0,
        packets_since_ns: None,
        oldest_ns: None,
    });
    run
}

fn flow(run: &mut Run, program: u32, name: &str, kind: FlowKind, n: usize) {
    let name = name.to_owned();
    let flow = MessageFlow { flow: 1, name, kind, ended: n as u64, ..MessageFlow::default() };
    let program =
        TracedProgram { program, tgid: 10, flows: vec![flow], ..TracedProgram::default() };
    run.messages.programs.push(program);
}

fn second(run: &mut Run, program: u32, metric: MessageMetric, values: impl Iterator<Item = u64>) {
    let mut histogram = Histogram::new(PRECISION_KERNEL);
    values.for_each(|value| histogram.record(value));
    let second = MessageSecond { program, flow: 1, metric, start_ns: 0, histogram };
    run.messages.seconds.push(second);
}
