//! What a claim takes of the slowest requests of a run: of each port apart, so that one which is slow by
//! its nature hides no other.
//!
//! Of an account that is the claim's the part is taken that the claim has of it, in whichever request
//! a thread had that account while it had the request, or while the request waited for it. Of work on
//! a CPU, and of waiting that is the claim's in a small part, it is not known in which request it was.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use model::{
    Account, Message, MessageTime, RequestCost, Service, ServiceRole, Target, TracedProgram,
    part_of,
};

use super::hurt::{self, Parts, Share};
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::kept;
use crate::case::slowest::{cost, is_enough};
use crate::cause::Claim;

/// Fewer slow requests show nothing.
pub(crate) const FEWEST: u64 = 10;

/// Of the port where it takes most. `None` where too few are known, or a part of a run is asked about.
pub(super) fn of(case: &Case, claim: &Claim) -> Option<RequestCost> {
    if case.scope().is_some() || claim.late.is_some() {
        return None;
    }
    let known = claim.requests.as_ref().map(|of| of.slowest.clone());
    let cost = known.or_else(|| by_accounts(case, claim).filter(|_| is_of_servers(case, claim)))?;
    is_enough(case.run, cost.of, cost.total_ns).then_some(cost)
}

/// The slowest requests come from somebody who is not recorded. Whoever asks within the recording waits
/// itself, and findings about that wait stand beside those about the server.
pub(super) fn come_from_outside(case: &Case) -> bool {
    let programs: BTreeSet<u32> = all_slowest(case).map(|message| message.program).collect();
    let is_called = |program: &u32| {
        case.run.messages.program(*program).is_some_and(|of| is_called_from_within(case, of))
    };
    let is_whole_host = case.run.header.target == Target::Host;
    is_whole_host || !programs.iter().all(is_called)
}

/// Recorded threads made at least half of the calls that this program answered.
fn is_called_from_within(case: &Case, server: &TracedProgram) -> bool {
    let services = || case.run.sums.services.iter();
    let name = services().find(|one| one.program == server.program).map_or("", |one| &one.name);
    let calls =
        services().filter(|one| one.role == ServiceRole::Client && calls(one, server, name));
    let number = calls
        .filter_map(|client| case.run.messages.program(client.program))
        .fold(0, |sum: u64, client| sum.saturating_add(ended(client)));
    number > 0 && number >= ended(server) / 2
}

/// This is who calls the program that answers at `name`. Of a process that calls itself it is not noted
/// who answers: then the socket has the same name, on this host.
fn calls(client: &Service, server: &TracedProgram, name: &str) -> bool {
    if let Some(peer) = &client.peer {
        return peer.tgid == server.tgid;
    }
    let is_same = match client.name.parse::<SocketAddr>() {
        Ok(peer) => peer.ip().is_loopback() && name == format!("port {}", peer.port()),
        Err(_) => client.name == name,
    };
    client.tgid == server.tgid && is_same
}

fn ended(program: &TracedProgram) -> u64 {
    program.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.ended))
}

/// Of all ports.
fn all_slowest<'a>(case: &'a Case) -> impl Iterator<Item = &'a Message> {
    case.slowest().iter().flat_map(|port| &port.requests).map(|one| &one.message)
}

/// Of a claim that is mostly time of processes without slow requests these say nothing.
fn is_of_servers(case: &Case, claim: &Claim) -> bool {
    // Of a port that several processes answer at each is known by its own requests alone.
    let of_one = |message: &Message| {
        let program = case.run.messages.program(message.program).map(|program| program.tgid);
        message.at_socket.as_ref().map(|at| at.tgid).into_iter().chain(program)
    };
    let slow: BTreeSet<u32> = all_slowest(case).map(|message| message.program).collect();
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
    use model::{Account, Blocked, ChainEnd, Message, Run, Service, ServiceRole, Target, WaitSum};

    use crate::testing::requests::{MS, PORT, calls, request, served, served_at};
    use crate::testing::{RunBuilder, SECOND, USER, interval, runner, wait};

    const QUEUED: Account = Account::RunnablePreempted;
    const THROTTLED: Account = Account::Throttled;
    const DISK: Account = Account::Blocked(Blocked::Disk);

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
        let cost = found.findings[0].requests.as_ref().unwrap();
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

    /// Nobody notes who answers those.
    #[test]
    fn clients_that_are_threads_of_the_server_itself_are_recorded() {
        let first = |at: &str, number| {
            let mut run = calls(server_with_a_neighbour(), number, 10 * MS);
            run.header.target = Target::Process(10);
            let client = run.sums.services.last_mut().unwrap();
            (client.name, client.peer) = (at.to_owned(), None);
            run.sums.services.push(Service {
                program: PORT,
                role: ServiceRole::Server,
                name: "port 80".into(),
                ..run.sums.services[0].clone()
            });
            crate::explain(&run).findings[0].cause.clone()
        };
        assert_eq!(first("127.0.0.1:80", 20), "futex-convoy");
        assert_eq!(first("127.0.0.1:80", 9), "cgroup-throttle", "most come from somebody else");
        assert_eq!(first("127.0.0.1:81", 20), "cgroup-throttle", "another port");
        assert_eq!(first("10.0.0.9:80", 20), "cgroup-throttle", "another host");
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
        assert_eq!(
            found.findings[0].requests.as_ref().unwrap().with,
            20,
            "they are felt in its requests"
        );
    }

    /// A server with so many requests of 50 ms, throttled for 40 of them, and another port with 480 of
    /// 480 ms each, which sleep, and of that `for_disk` for the disk.
    fn server_with_a_slow_port(quick: u64, for_disk: u64) -> Run {
        let (idle, asleep) =
            (Account::Blocked(Blocked::Poll), Account::Blocked(Blocked::TimerSleep));
        let accounts = [(USER, 10 * MS * quick), (THROTTLED, 40 * MS * quick), (idle, SECOND)];
        let mut run = RunBuilder::new().thread(11, 10, &accounts);
        for n in 0..quick {
            run = run.kept(interval(11, THROTTLED, 90 * n * MS, 40 * MS, None));
        }
        let mut requests = Vec::new();
        for tid in 100..160 {
            let accounts = [(asleep, 38 * SECOND / 10 - 8 * for_disk), (DISK, 8 * for_disk)];
            run = run.thread(tid, 10, &accounts);
            for n in 0..8 {
                requests.push(request(u64::from(tid), tid, 500 * n, 0, 480));
                run = run.kept(interval(tid, DISK, 500 * n * MS, for_disk.max(1), None));
            }
        }
        if for_disk > 0 {
            let frames = ["folio_wait_bit_common", "filemap_read"];
            run = run.slept_path(10, DISK, "pread64", &frames, 480, 480 * for_disk);
        }
        let run = served(run.build(), (0..quick).map(|n| request(1, 11, 90 * n, 0, 50)).collect());
        served_at(run, PORT + 10, "port 8080", requests)
    }

    #[test]
    fn requests_that_are_slow_by_their_nature_hide_none_of_another_port() {
        let found = crate::explain(&server_with_a_slow_port(19, 0));
        let causes: Vec<&str> = found.findings.iter().map(|f| f.cause.as_str()).collect();
        assert_eq!(causes, ["cgroup-throttle"]);
        let cost = found.findings[0].requests.as_ref().unwrap();
        assert_eq!((cost.with, cost.of, cost.ns), (19, 19, 19 * 40 * MS));
        assert_eq!(cost.at.as_deref(), Some("port 80"));
        assert_eq!(crate::explain(&server(true)).findings[0].requests.as_ref().unwrap().at, None);
    }

    /// Of 480 ms each request of the slow port waits 60 for the disk, of 50 ms each of the other one is
    /// throttled for 40.
    #[test]
    fn what_takes_most_of_the_requests_of_its_port_comes_first() {
        let found = crate::explain(&server_with_a_slow_port(44, 60 * MS));
        let causes: Vec<&str> = found.findings.iter().map(|f| f.cause.as_str()).collect();
        assert_eq!(causes, ["cgroup-throttle", "disk-read"]);
        let of = |n: usize| found.findings[n].requests.as_ref().unwrap();
        assert_eq!(of(1).at.as_deref(), Some("port 8080"));
        assert!(of(0).ns < of(1).ns && of(0).share() > of(1).share());
    }

    /// Four ports with five slow requests each are looked at together.
    #[test]
    fn ports_of_few_slow_requests_are_judged_together() {
        let mut run = server_alone(true).build();
        for port in 0..4 {
            let requests = (0..5).map(|n| request(1, 11, 100 * (5 * port + n), 0, 10)).collect();
            run = served_at(run, PORT + 10 + port as u32, &format!("port {}", 80 + port), requests);
        }
        let found = crate::explain(&run);
        let cost = found.findings[0].requests.as_ref().unwrap();
        assert_eq!((cost.with, cost.of, cost.at.as_deref()), (20, 20, None));
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
