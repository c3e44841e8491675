//! Threads that were stopped, and what they were doing when it happened.
//!
//! Who stops a process stops all of its threads. One that waited for work then lost nothing by it, as
//! long as nothing came: the kernel interrupts the wait to make the stop, and the thread goes back to
//! waiting after it. Such a stop is known by a wait for work of the same thread that ended just before.
//! That something came meanwhile is known by a request which the thread read after the stop, or by
//! another thread that began to wait during the stop, and which this one let go on before it waited
//! again. From then on the stop hurt.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, Outlier, OutlierKind, Run, part_of};

use crate::case::lock_word::LockWord;
use crate::case::lost::{Class, class};
use crate::case::requests::kept;
use crate::case::spans::Span;

/// Stopped by a signal, frozen, or held by a tracer.
pub const STOPPED: Account = Account::Blocked(Blocked::Stopped);
/// A stop that begins so soon after a wait has interrupted it; in between, the thread had to get a
/// CPU.
const INTERRUPTED_NS: u64 = 1_000_000;
/// What a call returns that a signal has interrupted: -EINTR, and what the kernel starts again
/// (include/linux/errno.h).
const BY_SIGNAL: [i64; 5] = [-4, -512, -513, -514, -516];

/// Stops that were kept whole.
#[derive(Debug, Default)]
pub struct Stops {
    /// How many.
    pub number: u64,
    /// Their time.
    pub ns: u64,
    /// Of these, the ones that interrupted a wait for work.
    pub idle: u64,
    /// Their time before something came.
    pub idle_ns: u64,
    /// Of these, the ones in which something came.
    pub late: u64,
}

impl Stops {
    /// Looks at the outliers of `run`, which is a part of `whole`, or all of it.
    pub fn new(run: &Run, whole: &Run, locks: &[LockWord]) -> Stops {
        let mut stops = Stops::default();
        let interruptions = match sleeps(run).any(is_stop) {
            true => interruptions(whole, locks),
            false => BTreeMap::new(),
        };
        for stop in sleeps(run).filter(|o| is_stop(o)) {
            let ns = stop.breakdown.get(STOPPED);
            stops.number += 1;
            stops.ns = stops.ns.saturating_add(ns);
            let of_thread = interruptions.get(&stop.tid).map_or(&[][..], Vec::as_slice);
            let place = of_thread.partition_point(|one| one.stop.to_ns <= stop.start_ns);
            let Some(one) = of_thread.get(place).filter(|one| one.stop.from_ns < stop.end_ns())
            else {
                continue;
            };
            stops.idle += 1;
            stops.late += u64::from(one.came_ns < one.stop.to_ns);
            let harmless = one.came_ns.saturating_sub(stop.start_ns);
            stops.idle_ns = stops.idle_ns.saturating_add(ns.min(harmless));
        }
        stops
    }

    /// The part of `stopped` that interrupted waits for work, before something came.
    pub fn idle_part(&self, stopped: u64) -> u64 {
        part_of(stopped, self.idle_ns, self.ns)
    }
}

/// A stop that interrupted a wait for work.
struct Interruption {
    stop: Span,
    /// When something came, or the end.
    came_ns: u64,
}

/// Of each thread, in their order.
fn interruptions(run: &Run, locks: &[LockWord]) -> BTreeMap<u32, Vec<Interruption>> {
    let mut waits = BTreeMap::<u32, Vec<&Outlier>>::new();
    for wait in sleeps(run).filter(|o| is_idle(o, locks)) {
        waits.entry(wait.tid).or_default().push(wait);
    }
    waits.values_mut().for_each(|all| all.sort_unstable_by_key(|wait| wait.start_ns));
    let news = News::of(run);
    let mut all = BTreeMap::<u32, Vec<Interruption>>::new();
    for stop in sleeps(run).filter(|o| is_stop(o)) {
        let waits = waits.get(&stop.tid).map_or(&[][..], Vec::as_slice);
        let (before, after) = waits.split_at(waits.partition_point(|w| w.start_ns < stop.start_ns));
        let is_interrupted = |wait: &&&Outlier| {
            let gap = stop.start_ns.checked_sub(wait.end_ns());
            gap.is_some_and(|gap| gap < INTERRUPTED_NS)
        };
        let Some(interrupted) = before.last().filter(is_interrupted) else { continue };
        let again = after.iter().find(|wait| wait.blocked == interrupted.blocked);
        let again_ns = again.map_or(u64::MAX, |wait| wait.start_ns);
        let stop_span = Span { from_ns: stop.start_ns, to_ns: stop.end_ns() };
        let came_ns = news.first(stop.tid, stop_span, again_ns).unwrap_or(stop_span.to_ns);
        all.entry(stop.tid).or_default().push(Interruption { stop: stop_span, came_ns });
    }
    all.values_mut().for_each(|all| all.sort_unstable_by_key(|one| one.stop));
    all
}

/// What came for threads that were stopped, and when they turned to it, in the order in which it came.
struct News {
    /// Requests, by the thread that read them.
    requests: BTreeMap<u32, Vec<Span>>,
    /// Waits of others, by the thread that ended them.
    waits: BTreeMap<u32, Vec<Span>>,
}

impl News {
    fn of(run: &Run) -> News {
        let stopped: BTreeSet<u32> = sleeps(run).filter(|o| is_stop(o)).map(|o| o.tid).collect();
        let mut news = News { requests: BTreeMap::new(), waits: BTreeMap::new() };
        for request in kept(run).filter(|request| stopped.contains(&request.tid)) {
            let span = Span { from_ns: request.t0_ns, to_ns: request.logic_start_ns };
            news.requests.entry(request.tid).or_default().push(span);
        }
        let signals = interrupted_calls(run);
        for wait in sleeps(run) {
            let waker = wait.waker.as_ref().map_or(0, |waker| waker.tid);
            if waker != wait.tid && stopped.contains(&waker) && is_for_news(wait, &signals) {
                news.waits.entry(waker).or_default().push(until_woken(wait));
            }
        }
        let lists = news.requests.values_mut().chain(news.waits.values_mut());
        lists.for_each(|spans| spans.sort_unstable());
        news
    }

    /// When the first thing came during the stop to which the thread turned after it, before it waited
    /// again.
    fn first(&self, tid: u32, stop: Span, again_ns: u64) -> Option<u64> {
        let came = |spans: &BTreeMap<u32, Vec<Span>>, until_ns| {
            let all = spans.get(&tid).map_or(&[][..], Vec::as_slice);
            let during = all[all.partition_point(|span| span.from_ns < stop.from_ns)..].iter();
            let mut during = during.take_while(|span| span.from_ns < stop.to_ns);
            during.find(|span| (stop.to_ns..=until_ns).contains(&span.to_ns)).map(|s| s.from_ns)
        };
        let request = came(&self.requests, u64::MAX);
        request.into_iter().chain(came(&self.waits, again_ns)).min()
    }
}

fn sleeps(run: &Run) -> impl Iterator<Item = &Outlier> {
    run.outliers.iter().filter(|o| o.kind == OutlierKind::OffCpu)
}

fn is_stop(outlier: &Outlier) -> bool {
    outlier.blocked == Some(Blocked::Stopped)
}

/// Calls that a signal ended, by thread: a parent hears so that its child was stopped, and goes on.
fn interrupted_calls(run: &Run) -> BTreeMap<u32, Vec<Span>> {
    let mut calls = BTreeMap::<u32, Vec<Span>>::new();
    for call in run.outliers.iter().filter(|o| o.kind == OutlierKind::Syscall) {
        let result = call.syscall.and_then(|call| call.result);
        if result.is_some_and(|result| BY_SIGNAL.contains(&result)) {
            let span = Span { from_ns: call.start_ns, to_ns: call.end_ns() };
            calls.entry(call.tid).or_default().push(span);
        }
    }
    calls
}

/// A wait that whoever ended it ended by what it gave, not by being stopped or let go on.
fn is_for_news(wait: &Outlier, signals: &BTreeMap<u32, Vec<Span>>) -> bool {
    let is_within = |call: &Span| call.from_ns <= wait.start_ns && wait.end_ns() <= call.to_ns;
    !matches!(wait.blocked, Some(Blocked::ChildWait | Blocked::TimerSleep | Blocked::Stopped))
        && !signals.get(&wait.tid).is_some_and(|calls| calls.iter().any(is_within))
}

/// The part of a wait that was over when the thread was ready to go on.
fn until_woken(wait: &Outlier) -> Span {
    let ready = wait.breakdown.sum_of(Account::is_waiting_for_cpu);
    Span { from_ns: wait.start_ns, to_ns: wait.end_ns().saturating_sub(ready) }
}

/// A wait for work, and none for a lock.
fn is_idle(outlier: &Outlier, locks: &[LockWord]) -> bool {
    let idle = outlier.blocked.is_some_and(|kind| class(Account::Blocked(kind)) == Class::Idle);
    let lock = locks.iter().any(|l| l.tgid == outlier.tgid && l.address == outlier.object);
    idle && !lock
}
