//! Requests that wait for a peer: for its answers, or for their turn there.

use std::collections::BTreeMap;

use model::{Accounts, Message, MessageMetric, RequestCost};

use super::called::{Called, calls_of, known_part, peer, requests, trigger};
use super::turns::{Limit, limit};
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::{did, intervals_by_thread, kept};
use crate::case::slowest::cost;
use crate::case::spans::{Span, union};
use crate::cause::{Claim, OfRequests};
use crate::judge::FEWEST_REQUESTS;
use crate::text::{count, counted, duration, percent};

pub const TURNS: &str = "Allow more calls at a time (connections of the pool, maxconn) if the peer can take \
                     them, or let it answer sooner.";

/// The slowest requests that were known took much of their time at this peer, or waited for their turn
/// there.
pub fn of_requests(case: &Case, called: &Called) -> Option<Claim> {
    let program = called.service.program;
    let known = known_part(case, called, in_calls);
    let time = |message: &Message| (in_calls(message, program) as f64 * known) as u64;
    let slowest = cost(case.slowest(), |one| time(&one.message));
    if slowest.with == 0 || slowest.of < FEWEST_REQUESTS {
        return None;
    }
    let lost = waited(case, program);
    let (process, peer) = (case.process_name(called.service.tgid), peer(case, called));
    let requests_ns = requests(case, called, MessageMetric::Total).sum();
    let own = (called.total.sum() as f64 / requests_ns.max(1) as f64).min(1.0);
    let limit = limit(case, called).filter(|limit| is_waited_for(case, called, limit, &lost, own));
    let limit = limit.filter(|limit| limit.used > slowest.share());
    let title = match &limit {
        Some(limit) => format!(
            "requests of {process} wait for their turn at {peer}, {} at a time",
            one_or(limit.calls, "call")
        ),
        None => format!("requests of {process} wait for answers of {peer}"),
    };
    let mut claim = Claim::new(title, lost, called.total.count());
    claim.takes_idle = true;
    claim.mechanism(in_requests(&slowest));
    claim.requests = Some(OfRequests { slowest, of_all: own });
    if let Some(limit) = limit {
        claim.fix = Some(TURNS);
        let behind = |message: &Message| match time(message) {
            0 => 0,
            _ => (message.logic_ns() as f64 * limit.used) as u64,
        };
        let slowest = cost(case.slowest(), |one| behind(&one.message));
        claim.requests = Some(OfRequests { slowest, of_all: limit.used });
        claim.doubt(0.8, "how long each request waited for its turn is estimated from all of them");
        claim.mechanism(format!(
            "for {:.0} % of the time in which there were requests {} on the way, and no more, while \
             {:.1} requests were in progress on average",
            limit.used * 100.0,
            match limit.calls {
                1 => "one call was".to_owned(),
                calls => format!("{} calls were", count(calls)),
            },
            requests_ns as f64 / limit.load_ns as f64
        ));
    }
    trigger(case, called, &mut claim);
    Some(claim)
}

/// `one call`, `2 calls`.
fn one_or(number: u64, what: &str) -> String {
    match number {
        1 => format!("one {what}"),
        _ => counted(number, what),
    }
}

/// More requests are there than calls may be: the others wait. Those that wait to be read wait for a
/// thread, and where the thread that calls computes they wait for that.
fn is_waited_for(case: &Case, called: &Called, limit: &Limit, lost: &Accounts, own: f64) -> bool {
    let metric = |metric| requests(case, called, metric).sum();
    let are_read = metric(MessageMetric::Infrastructure) < metric(MessageMetric::Total) / 4;
    let are_more = limit.calls == 1 || (own < 0.5 && lost.total() >= limit.load_ns / 2);
    limit.used > own && are_read && are_more
}

/// Time of a message in which a call to this peer was on its way, ns.
fn in_calls(message: &Message, program: u32) -> u64 {
    let spans = union(&calls_of(message, program).map(|(_, span)| span).collect::<Vec<_>>());
    spans.iter().map(|span| span.ns()).sum()
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
