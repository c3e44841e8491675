//! Requests that wait for a peer: for its answers, or for their turn there.

use std::collections::BTreeMap;

use model::{Accounts, Message, MessageMetric, RequestCost};

use super::called::{Called, calls_of, peer, requests, trigger};
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::{did, intervals_by_thread, kept, load_ns};
use crate::case::slowest::cost;
use crate::case::spans::{Span, union};
use crate::cause::{Claim, OfRequests};
use crate::judge::FEWEST_REQUESTS;
use crate::text::{duration, percent};

pub const TURNS: &str = "Allow more calls at a time (connections of the pool, maxconn) if the peer can take \
                     them, or let it answer sooner.";

/// The slowest requests that were known took much of their time at this peer, or waited for their turn
/// there.
pub fn of_requests(case: &Case, called: &Called) -> Option<Claim> {
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
    claim.mechanism(in_requests(&slowest));
    claim.requests = Some(OfRequests { slowest, of_all: own });
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
            "for {:.0} % of the time in which there were requests a call was on its way, one at a time, \
             while {:.1} of them were in progress on average",
            used * 100.0,
            requests_ns as f64 / load(case, called) as f64
        ));
    }
    trigger(case, called, &mut claim);
    Some(claim)
}

/// Time of a message in which a call to this peer was on its way.
fn in_calls(message: &Message, program: u32) -> Vec<Span> {
    union(&calls_of(message, program).map(|(_, span)| span).collect::<Vec<_>>())
}

/// The part of the time in which there are requests for which a call is on its way, if they do not overlap.
fn used(case: &Case, called: &Called) -> f64 {
    (called.total.sum() as f64 / load(case, called) as f64).min(1.0)
}

/// How long there were requests that called the peer, ns.
fn load(case: &Case, called: &Called) -> u64 {
    let called_it = |message: &&Message| calls_of(message, called.service.program).next().is_some();
    load_ns(case.run, called_it, called.total.sum())
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

fn in_requests(cost: &RequestCost) -> String {
    format!(
        "the {} slowest requests{} took {} together, of that {} ({}) from a call until its answer \
         arrived",
        cost.of,
        cost.of_port(),
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
