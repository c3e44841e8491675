//! Calls to a peer on this host that were recorded, too, or that a thread makes for others.

use std::collections::BTreeSet;

use model::histogram::PRECISION_KERNEL;
use model::{
    Account, Accounts, Blocked, Context, FlowKind, Histogram, MessageMetric, Outlier, OutlierKind,
};

use super::called::Called;
use crate::case::Case;
use crate::case::lost::{Class, class};

/// Who works on calls for less than this part of their time (3 of 4) may have held them back until it had
/// something to tell.
const MOST: (u64, u64) = (3, 4);
/// Of more requests than so many for a call, others have called, too.
const OTHERS: u64 = 2;

/// In what a thread waits for nothing but a time that it has chosen itself.
const PAUSE: Account = Account::Blocked(Blocked::TimerSleep);

/// The peer had work with these calls nearly all the time. What only waits there until there is
/// something to tell (a long poll, a job in a queue) counts for no request.
pub fn are_worked_on(case: &Case, called: &Called) -> bool {
    let Some(peer) = &called.service.peer else { return false };
    let messages = &case.run.messages;
    let mut requests = Histogram::new(PRECISION_KERNEL);
    for program in messages.programs.iter().filter(|program| program.tgid == peer.tgid) {
        for flow in program.flows.iter().filter(|flow| flow.kind == FlowKind::Request) {
            let all = messages.histogram(program.program, flow.flow, MessageMetric::Total);
            requests.merge(&all);
        }
    }
    let most = called.total.sum() / MOST.1 * MOST.0;
    requests.count() <= called.total.count().saturating_mul(OTHERS)
        && requests.sum() >= most
        && busy(case, peer.tgid) >= most
}

/// For so long its threads did something else than wait for what may come: an event loop that rests until
/// a time is over may hold back an answer until then.
fn busy(case: &Case, tgid: u32) -> u64 {
    let threads = case.whole().threads.iter().filter(|thread| thread.tgid == tgid);
    let is_busy = |account| class(account) != Class::Idle || account == PAUSE;
    threads.map(|thread| thread.accounts.sum_of(is_busy)).fold(0, u64::saturating_add)
}

/// A thread that sends for others, and lets them go on when there is an answer: the I/O thread of ZeroMQ.
/// What the others wait for it.
pub fn behind_senders(case: &Case, called: &Called) -> Accounts {
    let (Some(peer), tgid) = (&called.service.peer, called.service.tgid) else {
        return Accounts::new();
    };
    let sleeps = || {
        let own = case.run.outliers.iter().filter(|o| o.kind == OutlierKind::OffCpu);
        own.filter(|o| o.tgid == tgid)
    };
    // An interrupt that ends a wait has nothing to do with the thread that it came to.
    let waker = |o: &Outlier| {
        let waker = o.waker.as_ref().filter(|waker| waker.context == Context::Task);
        waker.map(|waker| (waker.tgid, waker.tid))
    };
    let by_peer = |o: &&Outlier| waker(o).is_some_and(|(process, _)| process == peer.tgid);
    let senders: BTreeSet<u32> = sleeps().filter(by_peer).map(|o| o.tid).collect();
    let waits = sleeps().filter(|o| {
        let is_by_sender = waker(o).is_some_and(|(_, tid)| senders.contains(&tid));
        is_by_sender && !senders.contains(&o.tid)
    });
    let waited = waits.filter_map(|o| {
        let account = Account::Blocked(o.blocked?);
        (class(account) == Class::Idle).then_some((account, o.breakdown.get(account)))
    });
    at_most(waited.collect(), called.total.sum())
}

/// No more than calls were on their way.
fn at_most(waited: Accounts, ns: u64) -> Accounts {
    let all = waited.total();
    let part = |(account, of)| (account, model::part_of(of, ns.min(all), all));
    waited.iter().map(part).collect()
}
