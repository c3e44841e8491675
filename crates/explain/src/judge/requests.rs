//! What a claim takes of the slowest requests of a run.
//!
//! Of an account that is the claim's the part is taken that the claim has of it, in whichever request
//! a thread had that account while it had the request, or while the request waited for it. Of work on
//! a CPU, and of waiting that is the claim's in a small part, it is not known in which request it was.

use std::collections::BTreeSet;

use model::{Account, Message, MessageTime, RequestCost, ServiceRole, Target, part_of};

use super::hurt::{self, Parts, Share};
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::{cost, kept};
use crate::cause::Claim;

/// Fewer slow requests show nothing.
pub(crate) const FEWEST: u64 = 10;
/// Nor do slow requests that take less than one in so many parts of the recording together.
const LEAST: u64 = 20;

/// `None` where too few are known, or a part of a run is asked about.
pub(super) fn of(case: &Case, claim: &Claim) -> Option<RequestCost> {
    if case.scope().is_some() || claim.late.is_some() {
        return None;
    }
    let known = claim.requests.map(|of| of.slowest);
    let cost = known.or_else(|| by_accounts(case, claim).filter(|_| is_of_servers(case, claim)))?;
    let is_much = cost.total_ns >= case.run.length_ns() / LEAST;
    (cost.of >= FEWEST && is_much).then_some(cost)
}

/// The slowest requests come from somebody who is not recorded. Whoever asks within the recording waits
/// itself, and findings about that wait stand beside those about the server.
pub(super) fn come_from_outside(case: &Case) -> bool {
    let services = case.run.sums.services.iter();
    let clients = services.filter(|service| service.role == ServiceRole::Client);
    let called = clients.filter_map(|client| {
        let peer = client.peer.as_ref().map(|peer| peer.tgid);
        peer.filter(|tgid| *tgid != client.tgid)
    });
    let called: BTreeSet<u32> = called.collect();
    let is_called =
        |program| case.run.messages.program(program).is_some_and(|of| called.contains(&of.tgid));
    let is_whole_host = case.run.header.target == Target::Host;
    is_whole_host || !case.slowest().iter().all(|one| is_called(one.message.program))
}

/// Of a claim that is mostly time of processes without slow requests these say nothing.
fn is_of_servers(case: &Case, claim: &Claim) -> bool {
    // Of a port that several processes answer at each is known by its own requests alone.
    let of_one = |message: &Message| {
        let program = case.run.messages.program(message.program).map(|program| program.tgid);
        message.at_socket.as_ref().map(|at| at.tgid).into_iter().chain(program)
    };
    let slow: BTreeSet<u32> = case.slowest().iter().map(|one| one.message.program).collect();
    let of_them = kept(case.run).filter(|message| slow.contains(&message.program));
    let servers: BTreeSet<u32> = of_them.flat_map(of_one).collect();
    let processes: Vec<Share> =
        hurt::shares(case, claim).filter(|share| share.tid.is_none()).collect();
    let sum = |of: &dyn Fn(&&Share) -> bool| -> u64 {
        let shares = processes.iter().filter(of);
        shares.map(|share| share.claimed_ns).fold(0, u64::saturating_add)
    };
    sum(&|share| servers.contains(&share.tgid)) >= sum(&|_| true) / 2
}

fn by_accounts(case: &Case, claim: &Claim) -> Option<RequestCost> {
    let mut parts = Parts::new(case, claim);
    parts.taken.retain(|(account, ..)| class(*account) != Class::Work);
    let known = parts.taken.iter().map(|(_, claimed, _)| *claimed).fold(0, u64::saturating_add);
    (known > claim.lost.total() / 2).then(|| parts.cost(case))
}

impl Parts {
    fn cost(&self, case: &Case) -> RequestCost {
        cost(case.slowest(), |one| {
            let times = one.parts.iter().flat_map(|part| &part.time);
            times.map(|time| self.taken_of(time)).fold(0, u64::saturating_add)
        })
    }

    fn taken_of(&self, time: &MessageTime) -> u64 {
        let is_its = |(account, ..): &&(Account, u64, u64)| Some(*account) == time.account;
        let taken = self.taken.iter().find(is_its);
        taken.map_or(0, |(_, claimed, all)| part_of(time.ns, *claimed, *all))
    }
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, ChainEnd, Message, Run, Target, WaitSum};

    use crate::testing::requests::{MS, calls, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval, runner, wait};

    const QUEUED: Account = Account::RunnablePreempted;
    const THROTTLED: Account = Account::Throttled;

    /// A server that mostly waits for work. Its thread is throttled for 8 of 10 ms of each request, or
    /// for nothing of them, and in the run queue at other times.
    fn server(is_in_requests: bool) -> Run {
        served(server_alone(is_in_requests).build(), twenty_requests())
    }

    fn twenty_requests() -> Vec<Message> {
        (0..20).map(|n| request(1, 11, 100 * n, 0, 10)).collect()
    }

    fn server_alone(is_in_requests: bool) -> RunBuilder {
        let idle = (Account::Blocked(Blocked::Poll), 37 * SECOND / 10);
        let accounts = [(USER, SECOND / 10), idle, (QUEUED, SECOND / 10), (THROTTLED, SECOND / 12)];
        let mut run = RunBuilder::new().thread(11, 10, &accounts);
        for n in (0..20).filter(|_| is_in_requests) {
            run = run.kept(interval(11, THROTTLED, 100 * n * MS, 8 * MS, None));
        }
        run.runner(runner(10, 77, 900, SECOND / 10))
    }

    #[test]
    fn what_the_slow_requests_do_not_feel_is_not_named_and_what_they_feel_comes_first() {
        let found = crate::explain(&server(true));
        let causes: Vec<&str> = found.findings.iter().map(|f| f.cause.as_str()).collect();
        assert_eq!(causes, ["cgroup-throttle"], "the run queue is larger and no part of a request");
        let cost = found.findings[0].requests.unwrap();
        assert_eq!((cost.with, cost.of, cost.ns), (20, 20, 20 * 8 * MS));
        assert!(crate::explain(&server(false)).findings.is_empty());
    }

    /// The server, and a process that loses more in a lock.
    fn server_with_a_neighbour() -> Run {
        let futex = Account::Blocked(Blocked::Futex);
        let lock = WaitSum {
            lock_like: 100,
            ends: [(ChainEnd::Timer, 2 * SECOND)].into(),
            ..wait(20, futex, 0x1000, 100, 2 * SECOND)
        };
        let run = server_alone(true).thread(12, 10, &[(THROTTLED, SECOND / 2)]);
        let run = run.thread(21, 20, &[(USER, SECOND), (futex, 2 * SECOND)]);
        served(run.wait(lock).build(), twenty_requests())
    }

    #[test]
    fn requests_of_whom_the_recording_has_the_client_do_not_come_first() {
        let first = |run: &Run| crate::explain(run).findings[0].cause.clone();
        let mut run = server_with_a_neighbour();
        run.header.target = Target::Process(10);
        assert_eq!(first(&run), "cgroup-throttle");
        let mut run = calls(run, 20, 10 * MS);
        let client = run.sums.services.last_mut().unwrap();
        (client.tgid, client.peer.as_mut().unwrap().tgid) = (20, 10);
        assert_eq!(first(&run), "futex-convoy");
        run.header.target = Target::Host;
        assert_eq!(first(&run), "cgroup-throttle", "of the whole host all clients are recorded");
    }

    /// Process 20 has taken over half of the requests of the port, and is throttled as well.
    #[test]
    fn each_process_that_answers_at_a_port_is_a_server() {
        let of_second = |n: u64| n % 2 == 1;
        let idle = (Account::Blocked(Blocked::Poll), 37 * SECOND / 10);
        let mut run = RunBuilder::new().thread(11, 10, &[(USER, SECOND / 10), idle]).thread(
            21,
            20,
            &[(USER, SECOND / 10), idle, (THROTTLED, SECOND / 5)],
        );
        let mut requests = Vec::new();
        for n in 0..40 {
            let tid = if of_second(n) { 21 } else { 11 };
            let mut one = request(1, tid, 90 * n, 0, 10);
            one.at_socket.as_mut().unwrap().tgid = tid - 1;
            requests.push(one);
            if of_second(n) {
                run = run.kept(interval(21, THROTTLED, 90 * n * MS, 8 * MS, None));
            }
        }
        let found = crate::explain(&served(run.build(), requests));
        assert_eq!(found.findings[0].cause, "cgroup-throttle");
        assert_eq!(found.findings[0].requests.unwrap().with, 20, "they are felt in its requests");
    }

    #[test]
    fn without_requests_all_is_as_before() {
        let mut run = server(true);
        run.messages = model::Messages::default();
        let found = crate::explain(&run);
        assert_eq!(found.findings[0].cause, "cpu-runqueue");
        assert_eq!(found.findings[0].requests, None);
    }
}
