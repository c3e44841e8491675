//! Threads that wait for a peer, of a program without requests of its own.

use std::collections::BTreeSet;

use model::{Account, Accounts, Blocked, ChainEnd, MessageMetric, part_of};

use super::called::{self, Called, are_of_requests, callers, is_recorded, peer, requests, trigger};
use super::recorded::{are_worked_on, behind_senders};
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::cause::Claim;
use crate::causes::network::{nagle_delack, tcp_rto};
use crate::text::{counted, duration, mean};

pub const POLL: Account = Account::Blocked(Blocked::Poll);
/// Who does less than one in so many parts between answers may wait for something to do: a consumer of
/// a queue (BLPOP, a long poll) asks, too, and is answered when there is something.
const LEAST_WORK: u64 = 20;
/// Servers that hold answers back until there is something to do, by their programs and by their ports.
const BROKERS: [&str; 8] = [
    "redis-server",
    "valkey-server",
    "beanstalkd",
    "gearmand",
    "beam.smp",
    "nats-server",
    "mosquitto",
    "kafka",
];
const BROKERS_PORTS: [&str; 6] = [":6379", ":11300", ":4730", ":5672", ":4222", ":9092"];
/// One request for so many calls, or fewer, is not what they are for.
const FEW: u64 = 4;

/// A program without requests of its own, or whose requests do not show how long they took (several at
/// once at a socket of UDP), waits for the answers to what it has sent.
pub fn of_a_client(case: &Case, called: &Called) -> Option<Claim> {
    let requests = requests(case, called, MessageMetric::Total);
    if requests.sum() >= called.total.sum() || !are_of_requests(case, called) {
        return None;
    }
    let clients = clients(case, called);
    let asked = asked(case, called, &clients);
    let handed = behind_senders(case, called);
    let waited = match () {
        () if asked.total() > 0 => asked,
        () if handed.total() > 0 => handed,
        () => polled(case, called),
    };
    let waited = without_tcps(case, &clients, &waited);
    let threads = case.run.threads.iter().filter(|thread| clients.contains(&thread.tgid));
    let work =
        threads.map(|t| t.accounts.sum_of(|account| class(account) == Class::Work)).sum::<u64>();
    // A probe of its health now and then is no request that the answers are for.
    let serves = requests.count() > called.total.count() / FEW;
    let is_work = are_worked_on(case, called);
    let only_waits = !serves && !is_work && work < waited.total() / LEAST_WORK;
    let may_be_idle = is_broker(called) || is_recorded(case, called);
    if waited.total() == 0 || (only_waits && may_be_idle) {
        return None;
    }
    let process = case.process_name(called.service.tgid);
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
    if !is_work {
        claim.doubt(
            if only_waits { 0.6 } else { 0.9 },
            "a peer that holds its answer back until there is something to tell (a queue, a long \
             poll) looks the same",
        );
    }
    Some(claim)
}

fn is_broker(called: &Called) -> bool {
    let peer = called.service.peer.as_ref();
    peer.is_some_and(|peer| BROKERS.contains(&peer.comm.as_str()))
        || BROKERS_PORTS.iter().any(|port| called.name.ends_with(port))
}

/// The peer is not to blame for what TCP kept from it, or its answer from the program.
fn without_tcps(case: &Case, clients: &BTreeSet<u32>, waited: &Accounts) -> Accounts {
    let (mut held, mut resent) = (Accounts::default(), Accounts::default());
    for tgid in clients {
        held.merge(&nagle_delack::held_answers(case, *tgid));
        resent.merge(&tcp_rto::waited(case, *tgid));
    }
    let peers = |(account, ns): (Account, u64)| {
        (account, ns.saturating_sub(held.get(account)).saturating_sub(resent.get(account)))
    };
    waited.iter().map(peers).collect()
}

/// The process that has called, and its like: of workers that were forked and call the same peer, which is
/// known by its address, one process stands for all.
fn clients(case: &Case, called: &Called) -> BTreeSet<u32> {
    let first = called.service.tgid;
    let name = case.run.comm(first);
    let has_own = |tgid| case.run.sums.services.iter().any(|service| service.tgid == tgid);
    let waits = case.run.sums.waits.iter().filter(|wait| wait.asked).map(|wait| wait.tgid);
    let alike = waits.filter(|tgid| case.run.comm(*tgid) == name && !has_own(*tgid));
    alike.chain([first]).collect()
}

/// Waits of its threads for what they had asked for on a socket, which nobody recorded ended, or
/// nobody in the time that they had for it. Several
/// peers share them.
fn asked(case: &Case, called: &Called, clients: &BTreeSet<u32>) -> Accounts {
    let beyond = |end| matches!(end, ChainEnd::Outside | ChainEnd::Unwatched | ChainEnd::Timeout);
    let waits = case.run.sums.waits.iter().filter(|wait| clients.contains(&wait.tgid));
    let waits = waits.filter(|wait| wait.asked).filter(|wait| class(wait.account) == Class::Idle);
    let waited: Accounts = waits.map(|wait| (wait.account, wait.ends_in(beyond))).collect();
    let all = to_all_peers(case, called);
    waited.iter().map(|(a, ns)| (a, part_of(ns, called.total.sum(), all))).collect()
}

/// Of a program that waits for all its sockets at once: sleeps of the thread that called, where that is
/// not known of the one that polls most; at most as long as calls were on their way, and the part of
/// this peer of those to all.
fn polled(case: &Case, called: &Called) -> Accounts {
    let callers = callers(case, called);
    let threads = case.run.threads.iter().filter(|t| t.tgid == called.service.tgid);
    let threads = threads.filter(|thread| callers.is_empty() || callers.contains(&thread.tid));
    let poll = threads.map(|thread| thread.accounts.get(POLL)).max().unwrap_or(0);
    // For a job in a queue it waits for work.
    let asked = case.waits(POLL).filter(|wait| wait.tgid == called.service.tgid && wait.asked);
    let idle: u64 = asked.map(|wait| wait.ends_in(|end| end == ChainEnd::Idle)).sum();
    let poll = poll.saturating_sub(idle);
    let all = to_all_peers(case, called);
    let own = part_of(poll.min(all), called.total.sum(), all);
    [(POLL, own)].into_iter().collect()
}

/// Time of all calls of the process, to whichever peer.
fn to_all_peers(case: &Case, called: &Called) -> u64 {
    let others = called::called(case.run);
    let others = others.iter().filter(|other| other.service.tgid == called.service.tgid);
    others.map(|other| other.total.sum()).fold(0, u64::saturating_add)
}
