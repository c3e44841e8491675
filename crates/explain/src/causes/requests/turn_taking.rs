//! turn-taking: requests that a server works on wait until others of its requests let them go on.
//!
//! A monitor of Java, a row or a table in a transaction, a latch of a database, the lock of an
//! interpreter: one request has it, and the threads or processes of the others sleep. How they do is
//! the program's own business (a futex of each thread, an eventfd, a signal that ends poll), so nothing
//! tells the kernel that there is a lock. But whoever lets go wakes the next one, and both work on
//! requests: a thread that has taken a request, and then sleeps until a fellow wakes it, does not
//! wait for work.
//!
//! # Evidence
//!
//! Of a port or path whose threads work on one request at a time: sleeps within a request (on a futex, in
//! poll, on a pipe or semaphore) which a thread ended that works on requests of the same port; and where
//! each connection has a process, its sleeps in poll that another of them ended, as far as requests were
//! held open for as long. Calls to peers and locks that are known by their word have causes of their
//! own. At least a quarter of the time of the slowest requests, and a twentieth of the recording; of
//! requests that are held, 5 % of the wall time. Runtimes that have many requests on a thread (Go,
//! Node.js, asyncio, tokio) do not show whose turn it is: nothing is said of them.
//!
//! # Without whylag
//!
//!     jstack PID                                 # "waiting to lock", and who has it
//!     SELECT pid, pg_blocking_pids(pid), state, query FROM pg_stat_activity;
//!     SELECT * FROM sys.innodb_lock_waits;
//!     perf sched timehist -w -p PID              # whom each thread wakes
//!
//! # Sources
//!
//! PostgreSQL: src/backend/storage/lmgr/README, proc.c (ProcSleep, WaitLatch); OpenJDK:
//! objectMonitor.cpp; InnoDB: lock0wait.cc.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Accounts, Blocked, Context, FlowKind, Message, MessageFlow, MessageMetric,
    MessageTime, Outlier, OutlierKind, RecorderPart, TracedProgram,
};

use super::held_up::{has_own_cause, in_words};
use crate::case::Case;
use crate::case::chain_ends::ChainEnds;
use crate::case::requests::{cost, did, intervals_by_thread, kept};
use crate::case::safepoints::stood_still;
use crate::case::spans::{Span, union, within_all};
use crate::cause::{Absent, Cause, Claim, Needs, OfRequests, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::TURN_TAKING,
    title: "requests that are worked on wait until others let them go on",
    fix: "Something is held by one request that others need: a lock of the program, a row or table in a \
          transaction, a latch. Hold it for a shorter time, wait for nothing (a client, a sleep, a disk) \
          while it is held, or split it, so that fewer need the same.",
    reproduce: "mysteries/bin/turn-taking-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Requests]),
    look_alikes: &[],
    symptom: true,
    examine,
};

/// How a program may have a thread wait for another one.
const WAITS: [Account; 4] = [
    Account::Blocked(Blocked::Futex),
    Account::Blocked(Blocked::Poll),
    Account::Blocked(Blocked::PipeRead),
    Account::Blocked(Blocked::Other),
];
const POLL: Account = Account::Blocked(Blocked::Poll);
/// Fewer processes than that are no server that has one for each connection.
const PROCESSES: usize = 3;
/// Of fewer requests than one in so many it does not show whether a thread has several at a time.
const KEPT: u64 = 10;
/// Threads that work on one request at a time may seem to have two for so small a part.
const AT_ONCE: u64 = 50;
/// What those did that were waited for: so many lines.
const SHOWN: usize = 3;

/// A port or path, and how its requests waited for one another.
struct Port<'a> {
    program: &'a TracedProgram,
    flow: &'a MessageFlow,
    kept: Vec<&'a Message>,
    turns: Vec<Turn<'a>>,
}

/// A request waits until another one lets it go on.
struct Turn<'a> {
    request: &'a Message,
    account: Account,
    span: Span,
    /// The thread that ended it.
    by: u32,
}

fn examine(case: &Case) -> Verdict {
    let by_thread = intervals_by_thread(case.run);
    let ports = case.run.messages.programs.iter().flat_map(|program| {
        let requests = program.flows.iter().filter(|flow| flow.kind == FlowKind::Request);
        requests.map(move |flow| (program, flow))
    });
    let ports = ports.map(|(program, flow)| Port::of(case, program, flow, &by_thread));
    let claims = ports.filter_map(|port| {
        let of_processes = of_processes(case, &port);
        let of_threads = (port.ns() > 0).then(|| port.claim(case, &by_thread));
        of_processes.into_iter().chain(of_threads).max_by_key(|claim| claim.lost.total())
    });
    claims.max_by_key(|claim| claim.lost.total()).ok_or_else(|| {
        Absent(
            "no request was seen to wait for a thread that works on another one of the same port"
                .to_owned(),
        )
    })
}

/// Of a port that each connection has a process at: their sleeps in poll that another of them ended, at
/// most as long as requests were held. They are none of a request that is kept: nobody works on it.
fn of_processes(case: &Case, port: &Port) -> Option<Claim> {
    let answering: BTreeSet<u32> =
        port.kept.iter().filter_map(|m| m.at_socket.as_ref()).map(|at| at.tgid).collect();
    let is_fellow = |waiter: u32, waker: u32| {
        let is_of_it = answering.contains(&waker) || case.run.comm(waker) == case.run.comm(waiter);
        waker != 0 && waker != waiter && is_of_it
    };
    let waits = case.run.sums.waits.iter().filter(|wait| {
        wait.account == POLL
            && !wait.asked
            && answering.contains(&wait.tgid)
            && is_fellow(wait.tgid, wait.waker_tgid)
    });
    let (mut ends, mut n, mut ns) = (ChainEnds::default(), 0u64, 0u64);
    for wait in waits {
        ends.add(wait);
        n = n.saturating_add(wait.count);
        ns = ns.saturating_add(wait.ns);
    }
    let metric = MessageMetric::Held;
    let held = case.run.messages.histogram(port.program.program, port.flow.flow, metric);
    let ns = ns.min(held.sum());
    if ns == 0 || answering.len() < PROCESSES {
        return None;
    }
    let mut claim = Claim::new(title(case, port), [(POLL, ns)].into_iter().collect(), n);
    claim.takes_idle = true;
    claim.mechanism(format!(
        "{} of processes that answer {} ended when another of them let them go on; {} had an answer \
         only after that, {} on average",
        counted(n, "sleep"),
        port.flow.name,
        counted(held.count(), "request"),
        mean(held.sum(), held.count())
    ));
    if let Some(words) = ends.in_words("meanwhile that one, or whoever it waited for,") {
        claim.trigger(words);
    }
    claim.saw_if(
        ends.longest_in_words(case.whole()),
        "waker at sched_waking, with what it did before",
    );
    claim.exclude(
        "waiting for the next request",
        format!("requests were held for {} without an answer meanwhile", duration(held.sum())),
    );
    claim.doubt(
        0.8,
        "a request that is held until another one has news for it (a long poll) looks the same",
    );
    Some(claim)
}

fn title(case: &Case, port: &Port) -> String {
    let process = case.process_name(port.program.tgid);
    format!("requests of {process} wait until others of its requests let them go on")
}

impl<'a> Port<'a> {
    fn of(
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

    fn ns(&self) -> u64 {
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

    fn claim(&self, case: &Case, by_thread: &BTreeMap<u32, Vec<&Outlier>>) -> Claim {
        let by_request = self.by_request();
        let waited = |message: &Message| match message.program == self.program.program {
            true => by_request.get(&key(message)).copied().unwrap_or(0),
            false => 0,
        };
        let slowest = cost(case.slowest(), |one| waited(&one.message));
        let all = self.kept.iter().map(|message| message.total_ns()).fold(0, u64::saturating_add);
        let of_all = self.ns() as f64 / all.max(1) as f64;
        let lost: Accounts = self.turns.iter().map(|turn| (turn.account, turn.span.ns())).collect();
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
        self.trigger(case, by_thread, &mut claim);
        self.evidence(&mut claim);
        claim
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

fn key(message: &Message) -> (u32, u64) {
    (message.tid, message.logic_start_ns)
}

fn working(message: &Message) -> Span {
    Span { from_ns: message.logic_start_ns, to_ns: message.end_ns }
}

fn within(outer: Span, inner: Span) -> Option<Span> {
    let from_ns = outer.from_ns.max(inner.from_ns);
    let to_ns = outer.to_ns.min(inner.to_ns);
    (from_ns < to_ns).then_some(Span { from_ns, to_ns })
}

/// Threads that read a request, answer it, and only then read another one.
fn one_at_a_time(kept: &[&Message]) -> BTreeSet<u32> {
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

#[cfg(test)]
mod tests {
    use model::{ChainEnd, HandOver, Run, WaitSum, Waker};

    use super::*;
    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval, wait};

    const ASLEEP: Account = Account::Blocked(Blocked::TimerSleep);
    const FUTEX: Account = Account::Blocked(Blocked::Futex);

    /// Three threads, each with a request at a time: it waits 20 ms for the two others' turns, and then
    /// sleeps for 10 ms with what they wait for.
    fn queue(account: Account, waker: impl Fn(u32) -> u32, change: impl Fn(&mut Message)) -> Run {
        let mut run = RunBuilder::new();
        for tid in 11..14 {
            let accounts = [(account, 2 * SECOND), (ASLEEP, SECOND), (USER, SECOND)];
            run = run.thread(tid, 10, &accounts);
        }
        let mut requests = Vec::new();
        for n in 0..300 {
            let tid = 11 + (n % 3) as u32;
            let mut one = request(u64::from(tid), tid, 10 * n, 0, 30);
            change(&mut one);
            requests.push(one);
            let mut wait = interval(tid, account, 10 * n * MS, 20 * MS, None);
            wait.waker = Some(Waker {
                tid: waker(tid),
                tgid: 10,
                comm: "worker".into(),
                context: Context::Task,
            });
            run = run.kept(wait).kept(interval(tid, ASLEEP, (10 * n + 20) * MS, 10 * MS, None));
        }
        served(run.build(), requests)
    }

    fn next(tid: u32) -> u32 {
        if tid == 11 { 13 } else { tid - 1 }
    }

    #[test]
    fn requests_that_fellows_let_go_on_wait_for_them() {
        for account in WAITS {
            let run = queue(account, next, |_| {});
            let found = crate::explain(&run);
            let first = &found.findings[0];
            assert_eq!(first.cause, "turn-taking", "{account:?}: {:?}", found.findings);
            assert_eq!(first.lost_ns, 300 * 20 * MS);
            assert!(first.requests.unwrap().share() > 0.6);
            let asleep = |text: &str| text.contains("asleep until a timer");
            assert!(first.chain.iter().any(|link| asleep(&link.text)), "{:?}", first.chain);
        }
    }

    /// Four processes, each of which waits in poll until another one ends that, with a request held open.
    fn sessions(held: u64) -> Run {
        let mut run = RunBuilder::new();
        let mut requests = Vec::new();
        for tgid in 20..24 {
            run = run.thread(tgid, tgid, &[(POLL, 3 * SECOND), (USER, SECOND)]).wait(WaitSum {
                waker_tgid: if tgid == 20 { 23 } else { tgid - 1 },
                ends: [(ChainEnd::Outside, 2 * SECOND)].into(),
                ..wait(tgid, POLL, 0, 20, 2 * SECOND)
            });
            let mut one = request(u64::from(tgid), tgid, 10 * u64::from(tgid), 0, 1);
            one.at_socket.as_mut().unwrap().tgid = tgid;
            requests.push(one);
        }
        let mut run = served(run.build(), requests);
        let mut second = run.messages.seconds[0].clone();
        second.metric = MessageMetric::Held;
        second.histogram = model::Histogram::new(model::histogram::PRECISION_KERNEL);
        (0..held).for_each(|_| second.histogram.record(100 * MS));
        run.messages.seconds.push(second);
        run
    }

    #[test]
    fn sessions_that_are_let_go_on_by_others_wait_for_them_while_requests_are_held() {
        let found = crate::explain(&sessions(90));
        let first = &found.findings[0];
        assert_eq!(first.cause, "turn-taking", "{:?}", found.findings);
        assert_eq!(first.lost_ns, 8 * SECOND);
        assert!(first.chain.iter().any(|link| link.text.contains("outside")), "{:?}", first.chain);
        assert!(examine(&Case::new(&sessions(0))).is_err(), "they listen for news, and are idle");
    }

    #[test]
    fn who_is_let_go_on_by_others_waits_for_no_turn() {
        let absent = |run: &Run| examine(&Case::new(run)).unwrap_err().0;
        assert!(
            absent(&queue(FUTEX, |_| 99, |_| {})).contains("no request was seen"),
            "a dispatcher"
        );
        assert!(absent(&queue(FUTEX, |tid| tid, |_| {})).contains("no request was seen"));
        let handed = |one: &mut Message| {
            one.at_socket.as_mut().unwrap().handed = Some(HandOver { tid: 77, time_ns: None });
        };
        assert!(absent(&queue(FUTEX, next, handed)).contains("no request was seen"), "a runtime");
        assert!(absent(&queue(ASLEEP, next, |_| {})).contains("no request was seen"));
    }

    #[test]
    fn threads_with_several_requests_at_a_time_do_not_tell_whose_turn_it_is() {
        let run = queue(FUTEX, next, |one| one.end_ns += 5 * MS);
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn of_few_requests_that_were_kept_nothing_is_said() {
        let mut run = queue(FUTEX, next, |_| {});
        run.messages.programs[0].flows[0].ended = 30_000;
        assert!(examine(&Case::new(&run)).is_err());
    }
}
