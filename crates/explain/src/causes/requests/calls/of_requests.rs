//! Requests that wait for a peer: for its answers, or for their turn there.

use std::collections::BTreeMap;

use model::{Accounts, Message, MessageMetric, RequestCost, Service, part_of};

use super::called::{
    Called, are_of_requests, callers, calls_of, is_recorded, known_part, peer, requests, trigger,
};
use super::turns::{Limit, busy_ns, limit};
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::{did, intervals_by_thread, kept};
use crate::case::slowest::cost;
use crate::case::spans::{Span, union};
use crate::cause::{Claim, OfRequests};
use crate::judge::FEWEST_REQUESTS;
use crate::text::{count, counted, duration, percent};

/// So much of the requests that have called, by the number of calls, has to have a call of its own, %.
const WITH_CALLS_PERCENT: u64 = 75;
/// Calls that have so much of the time of their requests, %, leave none for anything else.
const WHOLE_PERCENT: u64 = 90;
/// One in so many requests.
const MANY: u64 = 4;
/// Answers that come sooner, and all after about the same time, may be as soon as they can be.
const SOON_NS: f64 = 10e6;
/// So much longer than half of the answers hardly any of them takes.
const ALIKE: u64 = 2;
/// So far calls of each request that was kept may be from those of all, as a part of these.
const OFF: f64 = 0.25;

pub const TURNS: &str = "Allow more calls at a time (connections of the pool, maxconn) if the peer can take \
                     them, or let it answer sooner.";

/// The slowest requests that were known took much of their time at this peer, or waited for their turn
/// there.
pub fn of_requests(case: &Case, called: &Called) -> Option<Claim> {
    let program = called.service.program;
    let known = known_part(case, called, in_calls);
    let time = |message: &Message| (in_calls(message, program) as f64 * known) as u64;
    let slowest = cost(case.slowest(), |one| time(&one.message));
    let limit = limit(case, called);
    let anonymous = is_unknown_whose(case, called);
    if slowest.of < FEWEST_REQUESTS {
        return None;
    }
    let (of_kept, of_all) = (waited(case, program), slept_beside_calls(case, called));
    let lost = if of_all.total() > of_kept.total() { of_all } else { of_kept };
    let (process, peer) = (case.process_name(called.service.tgid), peer(case, called));
    let requests_ns = requests(case, called, MessageMetric::Total).sum();
    let own = (called.total.sum() as f64 / requests_ns.max(1) as f64).min(1.0);
    let limit = limit.filter(|limit| is_waited_for(case, called, limit, &lost, own));
    let limit = limit.filter(|limit| limit.used > slowest.share());
    let limit = limit.filter(|_| !are_the_whole(case, called));
    if slowest.with == 0 && (limit.is_none() || !anonymous) {
        return None;
    }
    let title = match &limit {
        Some(limit) => format!(
            "requests of {process} wait for their turn at {peer}, {} at a time",
            one_or(limit.calls, "call")
        ),
        None => format!("requests of {process} wait for answers of {peer}"),
    };
    let mut claim = Claim::new(title, lost, called.total.count());
    claim.takes_idle = true;
    let is_estimate = anonymous
        && limit.is_none()
        && are_put_elsewhere(case, called)
        && (slowest.share()..1.0).contains(&own);
    claim.mechanism(match is_estimate || (anonymous && limit.is_some()) {
        true => whose_is_unknown(case, called),
        false => in_requests(&slowest),
    });
    let slowest = match is_estimate {
        true => {
            claim.doubt(0.8, "which request made which call is not known: the part is that of all");
            cost(case.slowest(), |one| (one.message.total_ns() as f64 * own) as u64)
        }
        false => slowest,
    };
    claim.requests = Some(OfRequests { slowest, of_all: own });
    if let Some(limit) = limit {
        claim.fix = Some(TURNS);
        let tgid = called.service.tgid;
        let calls = |message: &Message| match anonymous {
            true => message.at_socket.as_ref().is_some_and(|at| at.tgid == tgid),
            false => time(message) > 0,
        };
        let behind = |message: &Message| match calls(message) {
            false => 0,
            true => (message.logic_ns() as f64 * limit.used) as u64,
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
    if may_be_long_polls(case, called) {
        claim.doubt(
            0.7,
            "a peer that holds requests open until there is something to tell (long polls) looks the same",
        );
    }
    if are_alike(called) {
        claim.doubt(
            0.5,
            "its answers come soon, and all after about the same time: that may be what they need",
        );
    }
    trigger(case, called, &mut claim);
    Some(claim)
}

fn are_alike(called: &Called) -> bool {
    let quantile = |q| called.total.quantile(q).unwrap_or(u64::MAX);
    called.total.mean().is_some_and(|mean| mean < SOON_NS)
        && quantile(0.99) < quantile(0.5).saturating_mul(ALIKE)
}

/// Nearly all calls are this long.
const LONG_POLL_NS: u64 = 1_000_000_000;

/// Each call is as long as an event may take to come, and what the peer does meanwhile is not known.
fn may_be_long_polls(case: &Case, called: &Called) -> bool {
    !is_recorded(case, called)
        && called.total.quantile(0.05).is_some_and(|quick| quick >= LONG_POLL_NS)
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

/// Requests that have called the peer, a quarter of all or more, took as long as their calls: they waited for no
/// turn. Of fewer the others may wait for what these fetch.
fn are_the_whole(case: &Case, called: &Called) -> bool {
    let program = called.service.program;
    let Put { kept: all, with, .. } = Put::of(called, kept(case.run));
    let callers = kept(case.run).filter(|message| in_calls(message, program) > 0);
    let (total, within) = callers.fold((0u64, 0u64), |(total, within), message| {
        let of_it = in_calls(message, program);
        (total.saturating_add(message.total_ns()), within.saturating_add(of_it))
    });
    with >= all / MANY && within > total / 100 * WHOLE_PERCENT
}

/// Requests that were kept, those of them with calls to a peer, and these calls.
#[derive(Default)]
struct Put {
    kept: u64,
    with: u64,
    calls: u64,
}

impl Put {
    fn of<'a>(called: &Called, messages: impl Iterator<Item = &'a Message>) -> Put {
        let Service { tgid, program, .. } = *called.service;
        let is_its = |m: &&Message| m.at_socket.as_ref().is_some_and(|at| at.tgid == tgid);
        messages.filter(is_its).fold(Put::default(), |sum, message| {
            let calls = calls_of(message, program).count() as u64;
            let with = sum.with + u64::from(calls > 0);
            Put { kept: sum.kept + 1, with, calls: sum.calls + calls }
        })
    }
}

/// Requests have no call of their own though they must have called: the thread that reads an answer sends
/// the next call, and that counts for the request which was answered. So it looks, too, where some requests
/// make many calls and others none.
fn is_unknown_whose(case: &Case, called: &Called) -> bool {
    let all = Put::of(called, kept(case.run));
    let requests = requests(case, called, MessageMetric::Total).count();
    let have_called = part_of(all.kept, called.total.count(), requests);
    all.kept >= FEWEST_REQUESTS
        && all.with.saturating_mul(100) < have_called.saturating_mul(WITH_CALLS_PERCENT)
        && are_of_requests(case, called)
}

/// Neither the slow requests nor the sample of the others have about as many calls each as there were for all:
/// calls count for other requests than those that made them.
fn are_put_elsewhere(case: &Case, called: &Called) -> bool {
    let requests = requests(case, called, MessageMetric::Total).count();
    let of_each = called.total.count() as f64 / requests.max(1) as f64;
    let groups = [
        Put::of(called, case.run.messages.looked_at()),
        Put::of(called, case.run.messages.fast.iter()),
    ];
    let groups = groups.iter().filter(|group| group.kept >= FEWEST_REQUESTS);
    let means: Vec<f64> =
        groups.map(|group| group.calls as f64 / group.kept as f64 / of_each).collect();
    let are_fewer = means.iter().all(|mean| *mean < 1.0 - OFF);
    are_fewer || means.iter().all(|mean| *mean > 1.0 + OFF)
}

fn whose_is_unknown(case: &Case, called: &Called) -> String {
    let Put { kept, with, .. } = Put::of(called, kept(case.run));
    format!(
        "there were {} for {}, but only {with} of {} that were kept have any of their own: a call that a \
         thread sends after the answer to another one counts for the request of that one",
        counted(called.total.count(), "call"),
        counted(requests(case, called, MessageMetric::Total).count(), "request"),
        counted(kept, "request")
    )
}

/// Of an event loop whose requests call this peer: the part of its idle time for which there is no room
/// beside the time with calls, so that it slept while calls were on their way. This is of all requests, not
/// only of those that were kept.
fn slept_beside_calls(case: &Case, called: &Called) -> Accounts {
    let callers = callers(case, called);
    let mut alone = case.run.threads.iter().filter(|thread| callers.contains(&thread.tid));
    let (Some(caller), None, Some(busy_ns), true) =
        (alone.next(), alone.next(), busy_ns(called), are_of_requests(case, called))
    else {
        return Accounts::new();
    };
    let idle = || caller.accounts.iter().filter(|(account, _)| class(*account) == Class::Idle);
    let idle_ns = idle().map(|(_, ns)| ns).fold(0, u64::saturating_add);
    let both_ns = idle_ns.saturating_add(busy_ns).saturating_sub(case.run.length_ns());
    idle().map(|(account, ns)| (account, part_of(ns, both_ns, idle_ns))).collect()
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
