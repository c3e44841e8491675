//! A port whose threads work on one request at a time, and how its requests waited for one another.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Accounts, Blocked, Context, Histogram, Message, MessageFlow, MessageMetric,
    MessageTime, Outlier, OutlierKind, TracedProgram,
};

use super::whole::{Whole, whole};
use crate::case::Case;
use crate::case::requests::{did, kept};
use crate::case::safepoints::stood_still;
use crate::case::slowest::cost;
use crate::case::spans::{Span, union, within_all};
use crate::cause::{Claim, OfRequests};
use crate::causes::requests::held_up::{has_own_cause, in_words};
use crate::text::{count, counted, duration, mean, percent};

/// How a program may have a thread wait for another one.
pub const WAITS: [Account; 4] = [
    Account::Blocked(Blocked::Futex),
    Account::Blocked(Blocked::Poll),
    Account::Blocked(Blocked::PipeRead),
    Account::Blocked(Blocked::Other),
];
/// Of fewer requests than one in so many it does not show whether a thread has several at a time.
const KEPT: u64 = 10;
/// Threads that work on one request at a time may seem to have two for so small a part.
const AT_ONCE: u64 = 50;
/// What those did that were waited for: so many lines.
const SHOWN: usize = 3;

/// A port or path, and how its requests waited for one another.
pub struct Port<'a> {
    pub program: &'a TracedProgram,
    pub flow: &'a MessageFlow,
    pub kept: Vec<&'a Message>,
    turns: Vec<Turn<'a>>,
}

impl<'a> Port<'a> {
    pub fn of(
        case: &Case<'a>,
        program: &'a TracedProgram,
        flow: &'a MessageFlow,
        by_thread: &BTreeMap<u32, Vec<&'a Outlier>>,
    ) -> Port<'a> {
        let is_of_it = |m: &&Message| (m.program, m.flow) == (program.program, flow.flow);
        let kept: Vec<&Message> = kept(case.run).filter(is_of_it).collect();
        let mut port = Port { program, flow, kept, turns: Vec::new() };
        if (port.kept.len() as u64) < flow.ended / KEPT {
            return port;
        }
        let fellows = one_at_a_time(&port.kept);
        for request in port.kept.iter().filter(|m| fellows.contains(&m.tid)) {
            let own = by_thread.get(&request.tid).map_or(&[][..], Vec::as_slice);
            let waits = own.iter().filter(|wait| !has_own_cause(case, wait));
            port.turns.extend(waits.filter_map(|wait| turn(request, wait, &fellows)));
        }
        // Whoever had the turn could not go on while the whole process was stopped.
        let stops = stood_still(case.whole(), program.tgid);
        port.turns.retain(|turn| within_all(turn.span, &stops) < turn.span.ns() / 2);
        port
    }

    pub fn ns(&self) -> u64 {
        self.turns.iter().map(|turn| turn.span.ns()).fold(0, u64::saturating_add)
    }

    /// What each request waited so, by thread and start.
    fn by_request(&self) -> BTreeMap<(u32, u64), u64> {
        let mut by_request = BTreeMap::new();
        for turn in &self.turns {
            *by_request.entry(key(turn.request)).or_default() += turn.span.ns();
        }
        by_request
    }

    pub fn claim(&self, case: &Case, by_thread: &BTreeMap<u32, Vec<&Outlier>>) -> Claim {
        let by_request = self.by_request();
        let waited = |message: &Message| match message.program == self.program.program {
            true => by_request.get(&key(message)).copied().unwrap_or(0),
            false => 0,
        };
        let slowest = cost(case.slowest(), |one| waited(&one.message));
        let all = self.kept.iter().map(|message| message.total_ns()).fold(0, u64::saturating_add);
        let of_all = self.ns() as f64 / all.max(1) as f64;
        let held = self.held(case).count();
        let whole = whole(self.flow, &self.kept, held, waited);
        let lost = self.lost(whole.as_ref());
        let n = self.turns.len() as u64;
        let mut claim = Claim::new(title(case, self), lost, n);
        claim.takes_idle = true;
        claim.requests = Some(OfRequests { slowest, of_all });
        claim.mechanism(format!(
            "{} that had been read slept for {}, {} on average, until a thread let them go on that works \
             on requests of {} itself",
            counted(by_request.len() as u64, "request"),
            duration(self.ns()),
            mean(self.ns(), n),
            self.flow.name
        ));
        if let Some(whole) = whole.filter(|whole| whole.is_estimate()) {
            claim.mechanism(whole.in_words());
        }
        self.trigger(case, by_thread, &mut claim);
        self.evidence(&mut claim);
        claim
    }

    /// Of all requests, if what was kept tells of them, as those that were kept waited: by account.
    fn lost(&self, whole: Option<&Whole>) -> Accounts {
        let kept = self.ns();
        let more = whole.map_or(1.0, |whole| whole.ns as f64 / kept.max(1) as f64).max(1.0);
        let turns = self.turns.iter();
        let lost = turns.map(|turn| (turn.account, (turn.span.ns() as f64 * more) as u64));
        lost.collect()
    }

    /// Requests that nobody seemed to work on: none of them is kept.
    pub fn held(&self, case: &Case) -> Histogram {
        case.run.messages.histogram(self.program.program, self.flow.flow, MessageMetric::Held)
    }

    /// What those did that were waited for.
    fn trigger(&self, case: &Case, by_thread: &BTreeMap<u32, Vec<&Outlier>>, claim: &mut Claim) {
        let (mut held, mut without, mut all) = (Vec::<MessageTime>::new(), 0u64, 0u64);
        for turn in &self.turns {
            let hold = self.hold(turn);
            let of_it = self.kept.iter().filter(|m| m.tid == turn.by);
            let with: Vec<Span> = of_it.filter_map(|m| within(hold, working(m))).collect();
            let with = union(&with);
            let own = by_thread.get(&turn.by).map_or(&[][..], Vec::as_slice);
            held.extend(did(case.run, &with, own));
            all += hold.ns();
            without += hold.ns() - with.iter().map(|span| span.ns()).sum::<u64>();
        }
        let mut words: Vec<String> =
            merged(held).iter().take(SHOWN).map(|time| in_words(time, all)).collect();
        // Of requests that were not kept it is not known.
        let are_all_known = self.kept.len() as u64 >= self.flow.ended / 10 * 9;
        if are_all_known && without >= all / 10 {
            words.insert(
                0,
                format!(
                    "without a request {} ({}), as a session is whose client keeps a transaction open",
                    percent(without, all),
                    duration(without)
                ),
            );
        }
        if !words.is_empty() {
            claim.trigger(format!("whoever let them go on was meanwhile {}", words.join(", ")));
        }
    }

    /// From when on the one that ended the wait had what was waited for: it may have waited itself.
    fn hold(&self, turn: &Turn) -> Span {
        let own = self.turns.iter().filter(|other| other.request.tid == turn.by);
        let ends = own.map(|other| other.span.to_ns).filter(|end| *end <= turn.span.to_ns);
        let from_ns = ends.max().unwrap_or(0).max(turn.span.from_ns);
        Span { from_ns, to_ns: turn.span.to_ns }
    }

    fn evidence(&self, claim: &mut Claim) {
        let wakers: BTreeSet<u32> = self.turns.iter().map(|turn| turn.by).collect();
        let longest = self.turns.iter().max_by_key(|turn| turn.span.ns());
        claim.saw(
            format!(
                "{} of {} that were kept waited so; {} ended the waits, all of them seen to work on \
                 requests, one at a time",
                count(self.by_request().len() as u64),
                counted(self.kept.len() as u64, "request"),
                counted(wakers.len() as u64, "thread"),
            ),
            "requests at sockets; waker at sched_waking",
        );
        claim.saw_if(
            longest.map(|turn| {
                format!(
                    "request {} waited {} in thread {} for thread {}",
                    turn.request.id,
                    duration(turn.span.ns()),
                    turn.request.tid,
                    turn.by
                )
            }),
            "longest of these waits",
        );
        claim.exclude(
            "waiting for the next request",
            "only time between the read of a request and its answer counts".to_owned(),
        );
    }
}

/// A request waits until another one lets it go on.
struct Turn<'a> {
    request: &'a Message,
    account: Account,
    span: Span,
    /// The thread that ended it.
    by: u32,
}

pub fn title(case: &Case, port: &Port) -> String {
    let process = case.process_name(port.program.tgid);
    format!("requests of {process} wait until others of its requests let them go on")
}

fn key(message: &Message) -> (u32, u64) {
    (message.tid, message.logic_start_ns)
}

pub fn working(message: &Message) -> Span {
    Span { from_ns: message.logic_start_ns, to_ns: message.end_ns }
}

fn within(outer: Span, inner: Span) -> Option<Span> {
    let from_ns = outer.from_ns.max(inner.from_ns);
    let to_ns = outer.to_ns.min(inner.to_ns);
    (from_ns < to_ns).then_some(Span { from_ns, to_ns })
}

/// Threads that read a request, answer it, and only then read another one.
pub fn one_at_a_time(kept: &[&Message]) -> BTreeSet<u32> {
    let mut spans = BTreeMap::<u32, Vec<Span>>::new();
    let mut handing = BTreeSet::new();
    for message in kept {
        spans.entry(message.tid).or_default().push(working(message));
        if message.at_socket.as_ref().is_none_or(|at| at.handed.is_some()) {
            handing.insert(message.tid);
        }
    }
    let sum = |spans: &[Span]| spans.iter().map(|span| span.ns()).fold(0, u64::saturating_add);
    spans.retain(|tid, spans| {
        let all = sum(spans);
        !handing.contains(tid) && all - sum(&union(spans)).min(all) <= all / AT_ONCE
    });
    spans.into_keys().collect()
}

/// The part of a wait that lies in the work on the request, if another one ended it.
fn turn<'a>(request: &'a Message, wait: &Outlier, fellows: &BTreeSet<u32>) -> Option<Turn<'a>> {
    let account = Account::Blocked(wait.blocked.filter(|_| wait.kind == OutlierKind::OffCpu)?);
    let waker = wait.waker.as_ref().filter(|waker| waker.context == Context::Task)?;
    let is_fellow = waker.tid != request.tid && fellows.contains(&waker.tid);
    if !is_fellow || !WAITS.contains(&account) {
        return None;
    }
    let to_ns = wait.start_ns.saturating_add(wait.breakdown.get(account));
    let span = within(working(request), Span { from_ns: wait.start_ns, to_ns })?;
    // Until its answer comes a call is what is waited for.
    let calls = request.at_socket.iter().flat_map(|at| &at.calls);
    let mut calls = calls.map(|call| Span { from_ns: call.sent_ns, to_ns: call.arrived_ns });
    let is_call = calls.any(|call| within(span, call).is_some());
    (!is_call).then_some(Turn { request, account, span, by: waker.tid })
}

/// The same with one of each kind, the largest first.
fn merged(times: Vec<MessageTime>) -> Vec<MessageTime> {
    let mut all: Vec<MessageTime> = Vec::new();
    for time in times {
        let is_same = |one: &&mut MessageTime| (one.account, one.call) == (time.account, time.call);
        match all.iter_mut().find(is_same) {
            Some(one) => one.ns = one.ns.saturating_add(time.ns),
            None => all.push(time),
        }
    }
    all.sort_by_key(|time| std::cmp::Reverse(time.ns));
    all
}
