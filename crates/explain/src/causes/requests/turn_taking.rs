//! turn-taking: requests in progress are blocked by other requests of the same server (a lock, a row,
//! a transaction, the lock of an interpreter).
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
//! Of a port or path whose threads work on one request at a time: sleeps inside a request (on a futex, in
//! poll, on a pipe or semaphore) that are ended by a thread which handles requests of the same port; and
//! where each connection has a process, its sleeps in poll that another of them ended, as far as requests were
//! held open for as long. Calls to peers and locks that are known by their word have causes of their
//! own. At least a quarter of the time of the slowest requests, and a twentieth of the recording; of
//! requests that are held, 5 % of the wall time.
//!
//! Runtimes that have many requests on a thread (Go, Node.js, asyncio, tokio) do not show whose turn it is,
//! but that there are turns: answers come one at a time, each a turn after the one before and none in
//! less than half of that, more evenly than requests take, while others are in progress that came before.
//! Requests that come and take their time independently of each other do not do so. Where the readers, or more
//! than one CPU, compute meanwhile, or requests call peers, nothing is said. So little is known of turns
//! below a millisecond (--threshold), and of a port that keeps fewer than a third of its requests.
//!
//! # Without whylag
//!
//!     jstack PID                                 # "waiting to lock", and who has it
//!     SELECT pid, pg_blocking_pids(pid), state, query FROM pg_stat_activity;
//!     SELECT * FROM sys.innodb_lock_waits;
//!     perf sched record -a -- sleep 5; perf sched timehist -w -p PID   # whom each thread wakes
//!
//! # Sources
//!
//! PostgreSQL: src/backend/storage/lmgr/README, proc.c (ProcSleep, WaitLatch); OpenJDK:
//! objectMonitor.cpp; InnoDB: lock0wait.cc.

mod answers;
mod port;
mod whole;

use std::collections::BTreeSet;

use model::{Account, Blocked, FlowKind, MessageMetric, RecorderPart};

use self::port::{Port, title};
use crate::case::Case;
use crate::case::chain_ends::ChainEnds;
use crate::case::requests::intervals_by_thread;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::requests::calls::is_felt;
use crate::text::{counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::TURN_TAKING,
    title: "requests in progress are blocked by other requests of the same server",
    fix: "Something is held by one request that others need: a lock of the program, a row or table in a \
          transaction, a latch. Hold it for a shorter time, wait for nothing (a client, a sleep, a disk) \
          while it is held, or split it, so that fewer need the same.",
    reproduce: "mysteries/bin/turn-taking-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Requests]),
    look_alikes: &[],
    symptom: true,
    examine,
};

const POLL: Account = Account::Blocked(Blocked::Poll);
/// Fewer processes than that are no server that has one for each connection.
const PROCESSES: usize = 3;

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
        let in_turn = answers::claim(case, &port, &by_thread);
        let claims = of_processes.into_iter().chain(of_threads).chain(in_turn);
        claims.max_by_key(|claim| claim.lost.total())
    });
    // A port that takes turns for a small part of the time of its requests hides no other.
    claims.max_by_key(|claim| (is_felt(claim), claim.lost.total())).ok_or_else(|| {
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

#[cfg(test)]
mod tests {
    use model::{ChainEnd, Context, HandOver, Message, Run, WaitSum, Waker};

    use super::port::WAITS;
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
            assert!(first.requests.as_ref().unwrap().share() > 0.6);
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
