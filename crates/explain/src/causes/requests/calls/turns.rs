//! How many calls a peer has at a time: one connection, those of a pool, the limit of a proxy.

use model::Message;

use super::called::{Called, calls_of};
use crate::case::Case;
use crate::case::requests::{kept, load_ns};
use crate::case::spans::{Span, union};
use crate::judge::FEWEST_REQUESTS;

/// So much of the time in which calls are on their way there may be more of them than the limit: one in
/// so many.
const BEYOND: u64 = 50;
/// Of so much of the time of all calls it has to be known how many there were at once, %.
const KNOWN_PERCENT: u64 = 80;

/// At most so many calls are on their way at a time.
pub struct Limit {
    pub calls: u64,
    /// The part of the time with requests in which that many are, 0 to 1.
    pub used: f64,
    /// How long there were requests that called the peer, ns.
    pub load_ns: u64,
}

/// How long any call to the peer was on its way, ns, where that is known of enough of them.
pub fn busy_ns(called: &Called) -> Option<u64> {
    let at_once = &called.service.calls_at_once;
    let each = (1u64..).zip(at_once).map(|(calls, ns)| calls.saturating_mul(*ns));
    let known = each.fold(0, u64::saturating_add);
    (known >= called.total.sum() / 100 * KNOWN_PERCENT)
        .then(|| at_once.iter().copied().fold(0, u64::saturating_add))
}

/// The limit of the calls to a peer: hardly ever there are more of them, and so many for at least half of
/// the time. Of one call at a time it is enough that those which were kept do not overlap, and that all
/// together fit into the recording.
pub fn limit(case: &Case, called: &Called) -> Option<Limit> {
    let total = called.total.sum();
    let calls = match busy_ns(called) {
        Some(_) => most_at_once(&called.service.calls_at_once)?,
        None if total <= case.run.length_ns() && is_one_at_a_time(case, called) => 1,
        None => return None,
    };
    let load_ns = load(case, called, total / calls);
    let used = (total as f64 / (calls as f64 * load_ns as f64)).min(1.0);
    Some(Limit { calls, used, load_ns })
}

/// Of times with one call, two, and so on.
fn most_at_once(at_once: &[u64]) -> Option<u64> {
    let busy = at_once.iter().copied().fold(0, u64::saturating_add);
    let mut so_many = 0u64;
    let (last, ns) = at_once.iter().enumerate().rev().find(|(_, ns)| {
        so_many = so_many.saturating_add(**ns);
        so_many > busy / BEYOND
    })?;
    (*ns >= busy / 2).then_some(last as u64 + 1)
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
    spans.len() as u64 >= FEWEST_REQUESTS && all - apart <= all / BEYOND
}

fn load(case: &Case, called: &Called, worked_ns: u64) -> u64 {
    let called_it = |message: &&Message| calls_of(message, called.service.program).next().is_some();
    load_ns(case.run, called_it, worked_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_for_half_of_the_time_and_hardly_ever_exceeded() {
        assert_eq!(most_at_once(&[10, 90]), Some(2));
        assert_eq!(most_at_once(&[10, 89, 1]), Some(2));
        assert_eq!(most_at_once(&[100]), Some(1));
        assert_eq!(most_at_once(&[10, 80, 10]), None, "three come and go");
        assert_eq!(most_at_once(&[60, 40]), None, "two are seldom there");
        assert_eq!(most_at_once(&[]), None);
    }
}
