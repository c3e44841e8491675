//! Calls to peers, as sockets show them: whom a program waits for that it does not record.

use std::collections::{BTreeMap, BTreeSet};

use model::histogram::PRECISION_KERNEL;
use model::{
    Account, Accounts, Blocked, Call, ChainEnd, FlowKind, Histogram, Message, MessageMetric,
    RequestCost, Run, Service, TracedProgram, part_of,
};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::{cost, did, intervals_by_thread, kept};
use crate::case::spans::{Span, union};
use crate::cause::{Claim, OfRequests};
use crate::causes::network::{nagle_delack, tcp_rto};
use crate::judge::{FEWEST_REQUESTS, LEAST_OF_REQUESTS};
use crate::text::{counted, duration, mean, percent, quantiles};

/// A peer that a program called.
struct Called<'a> {
    service: &'a Service,
    name: &'a str,
    /// Until the answer arrived.
    total: Histogram,
}

/// The peer that requests, or threads, wait for most; `None` if none is slow. One that takes too little
/// of the requests to be named hides no other.
pub(super) fn examine(case: &Case) -> Option<Claim> {
    let claims = called(case.run)
        .into_iter()
        .filter(|called| is_long(case, called))
        .filter_map(|called| of_a_client(case, &called).or_else(|| of_requests(case, &called)));
    claims.max_by_key(|claim| (is_felt(claim), claim.lost.total()))
}

/// It takes enough of the requests, or is no claim of requests.
pub(super) fn is_felt(claim: &Claim) -> bool {
    let share = |of: &OfRequests| of.slowest.share().max(of.of_all);
    claim.requests.as_ref().is_none_or(|of| share(of) >= LEAST_OF_REQUESTS)
}

fn called(run: &Run) -> Vec<Called<'_>> {
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
fn is_long(case: &Case, called: &Called) -> bool {
    called.total.mean().unwrap_or(0.0) >= case.run.header.threshold_ns as f64
}

/// Time of a message in which a call to this peer was on its way.
fn in_calls(message: &Message, program: u32) -> Vec<Span> {
    union(&calls_of(message, program).map(|(_, span)| span).collect::<Vec<_>>())
}

/// The calls to this peer: the thread that called, and the time within the message.
fn calls_of(message: &Message, program: u32) -> impl Iterator<Item = (u32, Span)> {
    let calls = message.at_socket.iter().flat_map(|at| &at.calls);
    let calls = calls.filter(move |call| call.program == program).map(|call| {
        let from_ns = call.sent_ns.max(message.t0_ns);
        (call.tid, Span { from_ns, to_ns: call.arrived_ns.min(message.end_ns) })
    });
    calls.filter(|(_, span)| span.from_ns < span.to_ns)
}

/// The slowest requests that were known took much of their time at this peer, or waited for their turn
/// there.
fn of_requests(case: &Case, called: &Called) -> Option<Claim> {
    let program = called.service.program;
    let time = |message: &Message| -> u64 {
        in_calls(message, program).iter().map(|span| span.ns()).sum()
    };
    let slowest = cost(case.slowest(), |one| time(&one.message));
    if slowest.with == 0 || slowest.of < FEWEST_REQUESTS {
        return None;
    }
    let lost = waited(case, program);
    let (process, peer) = (case.process_name(called.service.tgid), peer(case, called));
    let requests_ns = requests(case, called, MessageMetric::Total).sum();
    let queued_ns = requests(case, called, MessageMetric::Infrastructure).sum();
    let own = (called.total.sum() as f64 / requests_ns.max(1) as f64).min(1.0);
    // More calls than fit into the recording one by one have overlapped.
    let fit = called.total.sum() <= case.run.length_ns();
    let (turns, used) = (fit && is_one_at_a_time(case, called), used(case, called));
    // Those that wait to be read wait for a thread.
    let takes_turns = turns && used > own.max(slowest.share()) && queued_ns < requests_ns / 4;
    let title = match takes_turns {
        true => format!("requests of {process} wait for their turn at {peer}, one call at a time"),
        false => format!("requests of {process} wait for answers of {peer}"),
    };
    let mut claim = Claim::new(title, lost, called.total.count());
    claim.takes_idle = true;
    claim.requests = Some(OfRequests { slowest, of_all: own });
    claim.mechanism(in_requests(&slowest));
    if takes_turns {
        claim.fix = Some(TURNS);
        let behind = |message: &Message| match time(message) {
            0 => 0,
            _ => (message.logic_ns() as f64 * used) as u64,
        };
        let slowest = cost(case.slowest(), |one| behind(&one.message));
        claim.requests = Some(OfRequests { slowest, of_all: used });
        claim.doubt(0.8, "how long each request waited for its turn is estimated from all of them");
        claim.mechanism(format!(
            "for {:.0} % of the recording a call was on its way, one at a time, while {:.1} requests \
             were in progress on average",
            used * 100.0,
            requests_ns as f64 / case.run.length_ns().max(1) as f64
        ));
    }
    trigger(case, called, &mut claim);
    Some(claim)
}

const TURNS: &str = "Allow more calls at a time (connections of the pool, maxconn) if the peer can take \
                     them, or let it answer sooner.";

/// The part of the recording in which a call was on its way, if they do not overlap.
fn used(case: &Case, called: &Called) -> f64 {
    (called.total.sum() as f64 / case.run.length_ns().max(1) as f64).min(1.0)
}

/// Of the calls that were kept none was sent before the answer to another.
fn is_one_at_a_time(case: &Case, called: &Called) -> bool {
    let at_socket = kept(case.run).filter_map(|message| message.at_socket.as_ref());
    let calls = at_socket.flat_map(|at| &at.calls);
    let calls = calls.filter(|call| call.program == called.service.program);
    let mut spans: Vec<Span> =
        calls.map(|call| Span { from_ns: call.sent_ns, to_ns: call.arrived_ns }).collect();
    spans.sort();
    spans.dedup();
    let all: u64 = spans.iter().map(|span| span.ns()).sum();
    let apart: u64 = union(&spans).iter().map(|span| span.ns()).sum();
    spans.len() as u64 >= FEWEST_REQUESTS && all - apart <= all / 50
}

/// Times of all requests of the process that calls, also those at a port that another one has opened.
fn requests(case: &Case, called: &Called, metric: MessageMetric) -> Histogram {
    let (messages, tgid) = (&case.run.messages, called.service.tgid);
    let answered = kept(case.run)
        .filter(|message| message.at_socket.as_ref().is_some_and(|at| at.tgid == tgid));
    let answered: BTreeSet<u32> = answered.map(|message| message.program).collect();
    let is_its = |p: &&TracedProgram| p.tgid == tgid || answered.contains(&p.program);
    let programs = messages.programs.iter().filter(is_its);
    let flows = programs.flat_map(|p| p.flows.iter().map(move |flow| (p.program, flow)));
    let mut all = Histogram::new(PRECISION_KERNEL);
    for (program, flow) in flows.filter(|(_, flow)| flow.kind == FlowKind::Request) {
        all.merge(&messages.histogram(program, flow.flow, metric));
    }
    all
}

fn in_requests(cost: &RequestCost) -> String {
    format!(
        "the {} slowest requests took {} together, of that {} ({}) from a call until its answer \
         arrived",
        cost.of,
        duration(cost.total_ns),
        duration(cost.ns),
        percent(cost.ns, cost.total_ns)
    )
}

/// Of the threads that called for requests which were kept: time in which they waited while calls
/// were on their way.
fn waited(case: &Case, program: u32) -> Accounts {
    let mut spans = BTreeMap::<u32, Vec<Span>>::new();
    for message in kept(case.run) {
        for (tid, span) in calls_of(message, program) {
            spans.entry(tid).or_default().push(span);
        }
    }
    let by_thread = intervals_by_thread(case.run);
    let mut waited = Accounts::new();
    for (tid, spans) in spans {
        let own = by_thread.get(&tid).map_or(&[][..], Vec::as_slice);
        for time in did(case.run, &union(&spans), own) {
            if let Some(account) = time.account.filter(|account| class(*account) == Class::Idle) {
                waited.add(account, time.ns);
            }
        }
    }
    waited
}

const POLL: Account = Account::Blocked(Blocked::Poll);
/// Who does less than one in so many parts between answers waits for something to do: a consumer of a
/// queue (BLPOP, a long poll) asks, too, and is answered when there is something.
const LEAST_WORK: u64 = 20;

/// A program without requests of its own, or whose requests do not show how long they took (several at
/// once at a socket of UDP), waits for the answers to what it has sent.
fn of_a_client(case: &Case, called: &Called) -> Option<Claim> {
    let requests = requests(case, called, MessageMetric::Total);
    let are_of_requests = called.total.count() >= requests.count() / 2;
    if requests.sum() >= called.total.sum() || !are_of_requests {
        return None;
    }
    let tgid = called.service.tgid;
    let asked = asked(case, called);
    let waited = if asked.total() > 0 { asked } else { polled(case, called) };
    let waited = without_tcps(case, tgid, &waited);
    let threads = case.run.threads.iter().filter(|thread| thread.tgid == tgid);
    let work =
        threads.map(|t| t.accounts.sum_of(|account| class(account) == Class::Work)).sum::<u64>();
    let is_idle = requests.count() == 0 && work < waited.total() / LEAST_WORK;
    if waited.total() == 0 || is_idle {
        return None;
    }
    let process = case.process_name(tgid);
    let title = format!("{process} waits for answers of {}", peer(case, called));
    let mut claim = Claim::new(title, waited.clone(), called.total.count());
    claim.takes_idle = true;
    claim.mechanism(format!(
        "asleep for {} until the answer to what had been sent came: {}, {} on average",
        duration(waited.total()),
        counted(called.total.count(), "call"),
        mean(called.total.sum(), called.total.count())
    ));
    trigger(case, called, &mut claim);
    claim.doubt(
        0.9,
        "a peer that holds its answer back until there is something to tell (a queue, a long poll) \
         looks the same",
    );
    Some(claim)
}

/// The peer is not to blame for what TCP kept from it, or its answer from the program.
fn without_tcps(case: &Case, tgid: u32, waited: &Accounts) -> Accounts {
    let (held, resent) = (nagle_delack::held_answers(case, tgid), tcp_rto::waited(case, tgid));
    let peers = |(account, ns): (Account, u64)| {
        (account, ns.saturating_sub(held.get(account)).saturating_sub(resent.get(account)))
    };
    waited.iter().map(peers).collect()
}

/// Waits of its threads for what they had asked for on a socket, which nobody recorded ended. Several
/// peers share them.
fn asked(case: &Case, called: &Called) -> Accounts {
    let tgid = called.service.tgid;
    let beyond = |end| matches!(end, ChainEnd::Outside | ChainEnd::Unwatched);
    let waits = case.run.sums.waits.iter().filter(|wait| wait.tgid == tgid && wait.asked);
    let waits = waits.filter(|wait| class(wait.account) == Class::Idle);
    let waited: Accounts = waits.map(|wait| (wait.account, wait.ends_in(beyond))).collect();
    let all = to_all_peers(case, called);
    waited.iter().map(|(a, ns)| (a, part_of(ns, called.total.sum(), all))).collect()
}

/// Of a program that waits for all its sockets at once: sleeps of the thread that called, where that is
/// not known of the one that polls most; at most as long as calls were on their way, and the part of
/// this peer of those to all.
fn polled(case: &Case, called: &Called) -> Accounts {
    let program = called.service.program;
    let callers: BTreeSet<u32> =
        kept(case.run).flat_map(|message| calls_of(message, program)).map(|(tid, _)| tid).collect();
    let threads = case.run.threads.iter().filter(|t| t.tgid == called.service.tgid);
    let threads = threads.filter(|thread| callers.is_empty() || callers.contains(&thread.tid));
    let poll = threads.map(|thread| thread.accounts.get(POLL)).max().unwrap_or(0);
    let all = to_all_peers(case, called);
    let own = part_of(poll.min(all), called.total.sum(), all);
    [(POLL, own)].into_iter().collect()
}

/// Time of all calls of the process, to whichever peer.
fn to_all_peers(case: &Case, called: &Called) -> u64 {
    let others = self::called(case.run);
    let others = others.iter().filter(|other| other.service.tgid == called.service.tgid);
    others.map(|other| other.total.sum()).fold(0, u64::saturating_add)
}

/// `127.0.0.1:5432 (postgres, pid 81)`.
fn peer(case: &Case, called: &Called) -> String {
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
fn trigger(case: &Case, called: &Called, claim: &mut Claim) {
    let answers = answers(case.run, called.service.program);
    claim.trigger(match (answers, &called.service.peer) {
        (Some(words), _) => words,
        (None, Some(peer)) => format!(
            "what {} (pid {}) did meanwhile is not known: it was not recorded",
            comm(case, peer),
            peer.tgid
        ),
        (None, None) => "the peer is not on this host, or was not seen to answer".to_owned(),
    });
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
    claim.exclude(
        "waiting for the next request",
        "only the time between a call of its own and the answer counts".to_owned(),
    );
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

#[cfg(test)]
mod tests {
    use model::{Depth, OutlierKind, Run, SocketKind, Syscall, SyscallCall, WaitSum};

    use super::*;
    use crate::testing::requests::{MS, PEER, calls, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue, wait};

    const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);

    fn call(from_ms: u64, ms: u64) -> Call {
        Call {
            program: PEER,
            tgid: 10,
            tid: 11,
            link: 5,
            cause: 1,
            sent_ns: from_ms * MS,
            arrived_ns: (from_ms + ms) * MS,
            read_ns: (from_ms + ms) * MS,
            answer: None,
        }
    }

    /// A proxy whose requests each wait for `ms` of 90 ms for a peer; it sleeps in poll meanwhile.
    fn proxy(ms: u64) -> Run {
        let mut run = RunBuilder::new().thread(11, 10, &[(POLL, 3 * SECOND), (USER, SECOND)]);
        let mut requests = Vec::new();
        for n in 0..30 {
            let mut one = request(1, 11, 100 * n, 0, 90);
            one.at_socket.as_mut().unwrap().calls = vec![call(100 * n, ms)];
            requests.push(one);
            run = run.kept(interval(11, POLL, 100 * n * MS, 90 * MS, None));
        }
        calls(served(run.build(), requests), 30, ms * MS)
    }

    #[test]
    fn a_proxy_that_sleeps_while_its_peer_is_slow_is_not_idle() {
        let run = proxy(80);
        let found = crate::explain(&run);
        let first = &found.findings[0];
        assert_eq!(first.cause, "slow-peer");
        assert!(first.title.contains("127.0.0.1:5432 (postgres, pid 90)"), "{}", first.title);
        assert_eq!(first.lost_ns, 30 * 80 * MS);
        let cost = first.requests.unwrap();
        assert_eq!((cost.with, cost.of, cost.ns), (30, 30, 30 * 80 * MS));
        assert!(first.chain.iter().any(|link| link.text.contains("not recorded")));
    }

    /// Thread 12 calls for the requests that thread 11 reads, and only it sleeps meanwhile.
    #[test]
    fn the_thread_that_called_is_the_one_that_waits() {
        let mut run = RunBuilder::new()
            .thread(11, 10, &[(POLL, 3 * SECOND), (USER, SECOND)])
            .thread(12, 10, &[(RECEIVE, 3 * SECOND), (USER, SECOND)]);
        let mut requests = Vec::new();
        for n in 0..30 {
            let mut one = request(1, 11, 100 * n, 0, 90);
            one.at_socket.as_mut().unwrap().calls = vec![Call { tid: 12, ..call(100 * n, 80) }];
            requests.push(one);
            run = run.kept(interval(12, RECEIVE, 100 * n * MS, 80 * MS, None));
        }
        let run = calls(served(run.build(), requests), 30, 80 * MS);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(RECEIVE), claim.lost.get(POLL)), (30 * 80 * MS, 0));
    }

    /// A client that asks and then does nothing until there is an answer, as one of a queue does.
    #[test]
    fn who_only_asks_for_something_to_do_is_idle() {
        let mut run = client(20 * MS);
        run.threads[0].accounts =
            [(RECEIVE, 39 * SECOND / 10), (USER, SECOND / 20)].into_iter().collect();
        assert!(examine(&Case::new(&run)).is_none());
    }

    #[test]
    fn a_peer_that_takes_little_of_the_requests_is_none_to_blame() {
        assert!(crate::explain(&proxy(10)).findings.is_empty());
    }

    /// A proxy that has one connection for its requests, of which six are always in progress.
    #[test]
    fn requests_that_take_turns_at_a_peer_wait_for_it_all() {
        let mut run = RunBuilder::new().thread(11, 10, &[(POLL, 39 * SECOND / 10)]);
        let mut requests = Vec::new();
        for n in 0..120 {
            let mut one = request(n % 6, 11, 30 * n, 0, 180);
            one.at_socket.as_mut().unwrap().calls = vec![call(30 * n + 150, 30)];
            requests.push(one);
            run = run.kept(interval(11, POLL, 30 * n * MS, 30 * MS, None));
        }
        let run = calls(served(run.build(), requests), 120, 30 * MS);
        let found = crate::explain(&run);
        assert_eq!(found.findings[0].cause, "slow-peer");
        assert!(found.findings[0].title.contains("one call at a time"), "{:?}", found.findings);
        assert_eq!(found.findings[0].fix, TURNS);
        assert!(found.findings[0].requests.unwrap().share() > 0.8, "they wait for those in front");
    }

    #[test]
    fn requests_that_do_not_show_how_long_they_took_are_known_by_their_calls() {
        let run = RunBuilder::new().thread(11, 10, &[(POLL, 39 * SECOND / 10)]).build();
        let requests = (0..100).map(|n| request(1, 11, 30 * n, 0, 1)).collect();
        let run = calls(served(run, requests), 90, 120 * MS);
        let found = crate::explain(&run);
        assert_eq!(found.findings[0].cause, "slow-peer");
        assert_eq!(found.findings[0].lost_ns, 39 * SECOND / 10, "no more than it slept");
        let beside = RunBuilder::new().thread(11, 10, &[(POLL, 39 * SECOND / 10)]).build();
        let requests = (0..100).map(|n| request(1, 11, 30 * n, 0, 1)).collect();
        let beside = calls(served(beside, requests), 4, 900 * MS);
        assert!(crate::explain(&beside).findings.is_empty(), "a long poll beside the requests");
    }

    /// A client whose waits for answers nobody ended who was recorded.
    fn client(mean_ns: u64) -> Run {
        calls(waiting_client().build(), 100, mean_ns)
    }

    fn waiting_client() -> RunBuilder {
        let sum = WaitSum {
            asked: true,
            ends: [(ChainEnd::Outside, 2 * SECOND)].into(),
            ..wait(10, RECEIVE, 0, 100, 2 * SECOND)
        };
        RunBuilder::new().thread(10, 10, &[(RECEIVE, 3 * SECOND), (USER, SECOND)]).wait(sum)
    }

    /// 20 of its waits took as long as an acknowledgement is delayed, with a part still to be sent.
    #[test]
    fn the_peer_is_not_blamed_for_what_tcp_kept_from_it() {
        let mut connection = queue(SocketKind::Tcp, 0, 0, 0);
        connection.send = Depth { mean: 232, max: 232, ..Depth::default() };
        let run = waiting_client().counter("net.tcp_delayed_acks", 100, 125).queue(connection);
        let run = (0..20).fold(run, |run, n| {
            let mut wait = interval(10, RECEIVE, n * SECOND / 10, 44 * MS, None);
            wait.kind = OutlierKind::Syscall;
            let call = Syscall::named("recvfrom").unwrap();
            wait.syscall = Some(SyscallCall { call, args: [3, 0, 0, 0, 0, 0], result: Some(2) });
            run.kept(wait)
        });
        let run = calls(run.build(), 100, 20 * MS);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(RECEIVE), 2 * SECOND - 20 * 44 * MS);
    }

    #[test]
    fn a_client_of_a_slow_server_that_nobody_records_is_told_who_it_is() {
        let found = crate::explain(&client(20 * MS));
        assert_eq!(
            (found.findings[0].cause.as_str(), found.findings[0].lost_ns),
            ("slow-peer", 2 * SECOND)
        );
        assert!(found.findings[0].title.contains("(postgres, pid 90)"));
        assert!(found.findings[0].doubts.iter().any(|doubt| doubt.contains("long poll")));
        assert!(examine(&Case::new(&client(5_000))).is_none(), "that is what a call costs");
    }
}
