//! What a Java program lost by standing still, and how much of that its collectors worked: what both causes
//! of such stops ask.

use std::collections::BTreeSet;

use model::{Account, Blocked, ChainEnd, Message, Outlier, Run, WaitSum};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::kept;
use crate::case::safepoints::{COLLECTORS, VM_THREAD};
use crate::case::slowest::cost;
use crate::case::spans::{Span, within_all};
use crate::cause::OfRequests;
use crate::text::{counted, duration};

/// What it takes of the requests of that process: the time in which it stood still.
pub(super) fn cost_of_stops(case: &Case, tgid: u32, stops: &[Span]) -> Option<OfRequests> {
    let programs = case.run.messages.programs.iter().filter(|program| program.tgid == tgid);
    let programs: BTreeSet<u32> = programs.map(|program| program.program).collect();
    let stood = |message: &Message| match programs.contains(&message.program) {
        true => within_all(Span { from_ns: message.t0_ns, to_ns: message.end_ns }, stops),
        false => 0,
    };
    let slowest = cost(case.slowest(), |one| stood(&one.message));
    let own: Vec<&Message> = kept(case.run).filter(|m| programs.contains(&m.program)).collect();
    let sum = |of: &dyn Fn(&Message) -> u64| {
        own.iter().map(|message| of(message)).fold(0, u64::saturating_add)
    };
    let of_all = sum(&stood) as f64 / sum(&Message::total_ns).max(1) as f64;
    (slowest.ns > 0).then_some(OfRequests { slowest, of_all })
}

/// CPU time of the JVM's collectors.
pub(super) fn collected(run: &Run, tgid: u32) -> u64 {
    let is_collector =
        |comm: &str| comm == VM_THREAD || COLLECTORS.iter().any(|name| comm.starts_with(name));
    let threads = run.threads.iter().filter(|t| t.tgid == tgid && is_collector(&t.comm));
    threads.map(|thread| thread.accounts.sum_of(|account| class(account) == Class::Work)).sum()
}

/// What the threads slept in these stops, together.
pub(super) fn asleep_ns(stops: &[&Outlier]) -> u64 {
    let asleep = stops.iter().map(|stop| stop.breakdown.get(Account::Blocked(Blocked::Futex)));
    asleep.fold(0, u64::saturating_add)
}

/// Waits for threads of the program that waited for the JVM's own thread to have collected: for the heap's lock,
/// which whoever asks for a collection has meanwhile.
pub(super) fn behind_stops(run: &Run, tgid: u32) -> u64 {
    let is_vm = |tid: u32| {
        run.threads.iter().any(|t| (t.tid, t.tgid) == (tid, tgid) && t.comm == VM_THREAD)
    };
    let is_behind = |wait: &&WaitSum| {
        wait.tgid == tgid
            && wait.account == Account::Blocked(Blocked::Futex)
            && wait.lock_like > wait.count / 2
            && wait.waker_comm != VM_THREAD
            && wait.usual_end.is_some_and(|(tid, end)| end == ChainEnd::Cpu && is_vm(tid))
    };
    run.sums.waits.iter().filter(is_behind).map(WaitSum::usual_ns).fold(0, u64::saturating_add)
}

/// How often, how many threads and how long.
pub(super) fn in_words_of_stops(stops: &[&Outlier], longest: &Outlier) -> String {
    let threads: BTreeSet<u32> = stops.iter().map(|stop| stop.tid).collect();
    format!(
        "{} of {} slept until '{VM_THREAD}' let them go on: {} together, the longest {}",
        counted(stops.len() as u64, "time"),
        counted(threads.len() as u64, "thread"),
        duration(asleep_ns(stops)),
        duration(longest.duration_ns)
    )
}
