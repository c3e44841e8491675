//! A peer that a program called, and what is known of it.

use std::collections::BTreeSet;

use model::histogram::PRECISION_KERNEL;
use model::{Call, FlowKind, Histogram, Message, MessageMetric, Run, Service, TracedProgram};

use crate::case::Case;
use crate::case::chain_ends::ChainEnds;
use crate::case::lost::{Class, class};
use crate::case::requests::kept;
use crate::case::spans::Span;
use crate::cause::Claim;
use crate::judge::FEWEST_REQUESTS;
use crate::text::{count, counted, duration, quantiles};

/// A peer that a program called.
pub struct Called<'a> {
    pub service: &'a Service,
    pub name: &'a str,
    /// Until the answer arrived.
    pub total: Histogram,
}

pub fn called(run: &Run) -> Vec<Called<'_>> {
    let services = run.sums.services.iter();
    let called = services.filter_map(|service| {
        let program = run.messages.program(service.program)?;
        let flow = program.flows.iter().find(|flow| flow.kind == FlowKind::Call)?;
        let total = run.messages.histogram(program.program, flow.flow, MessageMetric::Total);
        Some(Called { service, name: &flow.name, total })
    });
    called.collect()
}

/// Calls take as long as what is kept whole on average: less is what a call costs.
pub fn is_long(case: &Case, called: &Called) -> bool {
    called.total.mean().unwrap_or(0.0) >= case.run.header.threshold_ns as f64
}

/// The calls to this peer: the thread that called, and the time within the message.
pub fn calls_of(message: &Message, program: u32) -> impl Iterator<Item = (u32, Span)> {
    let calls = message.at_socket.iter().flat_map(|at| &at.calls);
    let calls = calls.filter(move |call| call.program == program).map(|call| {
        let from_ns = call.sent_ns.max(message.t0_ns);
        (call.tid, Span { from_ns, to_ns: call.arrived_ns.min(message.end_ns) })
    });
    calls.filter(|(_, span)| span.from_ns < span.to_ns)
}

/// Threads that called this peer for requests which were kept.
pub fn callers(case: &Case, called: &Called) -> BTreeSet<u32> {
    let program = called.service.program;
    kept(case.run).flat_map(|message| calls_of(message, program)).map(|(tid, _)| tid).collect()
}

/// The peer is recorded: what it does is known.
pub fn is_recorded(case: &Case, called: &Called) -> bool {
    let peer = called.service.peer.as_ref();
    peer.is_some_and(|peer| case.run.threads.iter().any(|thread| thread.tgid == peer.tgid))
}

/// There is a call for every second request, or more.
pub fn are_of_requests(case: &Case, called: &Called) -> bool {
    called.total.count() >= requests(case, called, MessageMetric::Total).count() / 2
}

/// Times of all requests of the process that calls, also those at a port that another one has opened.
pub fn requests(case: &Case, called: &Called, metric: MessageMetric) -> Histogram {
    let programs = answering(case, called);
    let flows = programs.iter().flat_map(|p| p.flows.iter().map(move |flow| (p.program, flow)));
    let mut all = Histogram::new(PRECISION_KERNEL);
    for (program, flow) in flows.filter(|(_, flow)| flow.kind == FlowKind::Request) {
        all.merge(&case.run.messages.histogram(program, flow.flow, metric));
    }
    all
}

fn answering<'a>(case: &Case<'a>, called: &Called) -> Vec<&'a TracedProgram> {
    let tgid = called.service.tgid;
    let answered = kept(case.run)
        .filter(|message| message.at_socket.as_ref().is_some_and(|at| at.tgid == tgid));
    let answered: BTreeSet<u32> = answered.map(|message| message.program).collect();
    let is_its = |p: &&TracedProgram| p.tgid == tgid || answered.contains(&p.program);
    case.run.messages.programs.iter().filter(is_its).collect()
}

/// An event loop that reads an answer may send the call of another request, which then counts for the one
/// that was answered. The part of what counts for requests in the sample that all calls together can be,
/// 0 to 1; where requests come at several ports nothing is left out.
pub fn known_part(case: &Case, called: &Called, in_calls: fn(&Message, u32) -> u64) -> f64 {
    let served = |program: &&TracedProgram| {
        program.flows.iter().any(|flow| flow.kind == FlowKind::Request && flow.ended > 0)
    };
    let programs: Vec<&TracedProgram> =
        answering(case, called).into_iter().filter(served).collect();
    let [port] = programs[..] else { return 1.0 };
    let sample = case.run.messages.fast.iter().filter(|message| message.program == port.program);
    let (counted, number) = sample.fold((0u64, 0u64), |(ns, number), message| {
        (ns.saturating_add(in_calls(message, called.service.program)), number + 1)
    });
    let all = requests(case, called, MessageMetric::Total).count();
    if number < FEWEST_REQUESTS || counted == 0 || all == 0 {
        return 1.0;
    }
    let of_each = called.total.sum() as f64 / all as f64;
    (of_each / (counted as f64 / number as f64)).min(1.0)
}

/// `127.0.0.1:5432 (postgres, pid 81)`.
pub fn peer(case: &Case, called: &Called) -> String {
    match &called.service.peer {
        Some(peer) => format!("{} ({}, pid {})", called.name, comm(case, peer), peer.tgid),
        None => called.name.to_owned(),
    }
}

fn comm<'a>(case: &Case<'a>, peer: &'a model::Peer) -> &'a str {
    match case.run.comm(peer.tgid) {
        "?" => &peer.comm,
        known => known,
    }
}

/// What the peer did, as far as that is known.
pub fn trigger(case: &Case, called: &Called, claim: &mut Claim) {
    let answers = answers(case.run, called.service.program);
    let ends = ends(case, called);
    let did =
        ends.in_words(&format!("meanwhile {}, or whoever it waited for,", peer(case, called)));
    claim.trigger(match (answers.or(did), &called.service.peer) {
        (Some(words), _) => words,
        (None, Some(peer)) if case.run.threads.iter().any(|thread| thread.tgid == peer.tgid) => {
            format!("of {} (pid {}) no answer to them was kept whole", comm(case, peer), peer.tgid)
        }
        (None, Some(peer)) => format!(
            "what {} (pid {}) did meanwhile is not known: it was not recorded",
            comm(case, peer),
            peer.tgid
        ),
        (None, None) => "the peer is not on this host, or was not seen to answer".to_owned(),
    });
    if let Some(longest) = ends.longest_in_words(case.whole()) {
        claim.trigger(longest);
    }
    claim.saw(
        format!(
            "{} of {} to {}: {}",
            counted(called.total.count(), "call"),
            case.process_name(called.service.tgid),
            peer(case, called),
            quantiles(&called.total)
        ),
        "from the send of each call until its answer arrived",
    );
    let given_up = called.service.given_up;
    claim.saw_if(
        (given_up > 0).then(|| {
            format!(
                "{} of them had no answer when {} closed the connection, and ended so",
                count(given_up),
                case.process_name(called.service.tgid)
            )
        }),
        "states of the connections",
    );
    claim.exclude(
        "waiting for the next request",
        "only the time between a call of its own and the answer counts".to_owned(),
    );
}

/// What the peer did while its caller waited, if it was recorded.
fn ends(case: &Case, called: &Called) -> ChainEnds {
    let mut ends = ChainEnds::default();
    let peer = called.service.peer.as_ref().map_or(0, |peer| peer.tgid);
    if case.whole().threads.iter().all(|thread| thread.tgid != peer) {
        return ends;
    }
    let waits = case.run.sums.waits.iter();
    let waits = waits.filter(|w| (w.tgid, w.waker_tgid) == (called.service.tgid, peer));
    waits.filter(|wait| class(wait.account) == Class::Idle).for_each(|wait| ends.add(wait));
    ends
}

/// Of calls whose peer was recorded: how its time divides.
fn answers(run: &Run, program: u32) -> Option<String> {
    let calls = kept(run).filter_map(|message| message.at_socket.as_ref()).flat_map(|at| &at.calls);
    let answered = calls.filter(|call| call.program == program);
    let answered: Vec<(&Call, &model::Answer)> =
        answered.filter_map(|call| Some((call, call.answer.as_ref()?))).collect();
    let sum = |of: fn(&(&Call, &model::Answer)) -> u64| -> u64 { answered.iter().map(of).sum() };
    let queued = sum(|(_, answer)| answer.read_ns.saturating_sub(answer.arrived_ns));
    let worked = sum(|(_, answer)| answer.served_ns.saturating_sub(answer.read_ns));
    (!answered.is_empty()).then(|| {
        format!(
            "there {} waited {} to be read, and {} until they were answered",
            counted(answered.len() as u64, "call"),
            duration(queued),
            duration(worked)
        )
    })
}
