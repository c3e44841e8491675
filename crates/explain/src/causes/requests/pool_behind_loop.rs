//! Requests that wait in a server for the few threads that its event loop, or several threads that only
//! read, hand them to: the pool of libuv, of asyncio's executors, of an NIO server, of gRPC.
//!
//! The loop reads each request at once and hands it on, so it waits in no queue that the kernel knows.
//! But the numbers tell: those threads never wait for work, one of them ends the loop's sleep for about
//! every request, and there are more requests in progress than threads. By Little's law what a request
//! takes beyond the time of one job is a wait in line.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Accounts, Blocked, FlowKind, Histogram, Message, MessageFlow, MessageMetric, Outlier,
    ThreadAccounts, TracedProgram, part_of,
};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::{intervals_by_thread, kept, load_ns};
use crate::case::slowest::cost;
use crate::cause::{Claim, OfRequests};
use crate::causes::ids;
use crate::causes::requests::held_up::{COMPUTES, WAITS};
use crate::text::{count, counted, duration, percent, quantiles};

const POLL: Account = Account::Blocked(Blocked::Poll);
const SLEEP: Account = Account::Blocked(Blocked::TimerSleep);

/// In what a thread may wait for the next job.
const FOR_WORK: [Blocked; 6] = [
    Blocked::Futex,
    Blocked::PipeRead,
    Blocked::Poll,
    Blocked::SocketReceive,
    Blocked::SocketAccept,
    Blocked::Other,
];

/// Threads that may have waited for work for more than the rest of the time in which there were requests are not
/// all busy.
const LEAST_USED: f64 = 0.85;
/// Of all the time of requests this part at least is in line.
const LEAST_IN_LINE: f64 = 1.0 / 3.0;
/// Each of the pool has one such end at least for so many of whoever has the most: where jobs end at the
/// same time, the first one alone wakes the loop.
const EVENLY: usize = 20;
/// Who has fewer than one for so many and waits for work for most of the recording is none of the pool: it answers
/// now and then, such as a thread for timers. Of a full pool nobody waits.
const SELDOM: usize = 4;
const IDLE_USED: f64 = 0.1;
/// So many times for each request do they end a sleep of the loop, or answer: two jobs may end at once, or
/// while the loop runs.
const ENDS: std::ops::Range<f64> = 0.25..1.3;
/// Names worth a line.
const NAMED: usize = 4;

/// A port whose loop hands requests to threads which are busy all the time.
struct Pool<'a> {
    program: &'a TracedProgram,
    flow: &'a MessageFlow,
    /// Threads that read the requests.
    readers: usize,
    threads: Vec<&'a ThreadAccounts>,
    total: Histogram,
    /// How often they ended a sleep of the loop, or answered themselves, whichever was more often.
    ends: u64,
    /// On average, while there were requests.
    in_progress: f64,
    /// Part of this time in which they did something.
    used: f64,
    /// What they did.
    did: Accounts,
}

/// Requests of the port with the longest line, if there is one.
pub(super) fn claim(case: &Case) -> Option<Claim> {
    let by_thread = intervals_by_thread(case.run);
    let ports = case.run.messages.programs.iter().flat_map(|program| {
        let requests = program.flows.iter().filter(|flow| flow.kind == FlowKind::Request);
        requests.map(move |flow| (program, flow))
    });
    let pools = ports.filter_map(|(program, flow)| Pool::of(case, program, flow, &by_thread));
    let claims = pools.map(|pool| pool.claim(case));
    claims.max_by_key(|claim| claim.lost.total())
}

impl<'a> Pool<'a> {
    fn of(
        case: &Case<'a>,
        program: &'a TracedProgram,
        flow: &'a MessageFlow,
        by_thread: &BTreeMap<u32, Vec<&Outlier>>,
    ) -> Option<Pool<'a>> {
        let run = case.run;
        let total = run.messages.histogram(program.program, flow.flow, MessageMetric::Total);
        let readers = run.messages.readers(program.program, flow.flow);
        let answered = answered(case, program, flow);
        let members = members(program.tgid, &readers, by_thread, &answered);
        let most = members.values().copied().max().unwrap_or(0);
        let length = run.length_ns().max(1) as f64;
        let used = |thread: &ThreadAccounts| {
            did(thread).iter().map(|(_, ns)| ns).sum::<u64>() as f64 / length
        };
        let is_member = |thread: &&ThreadAccounts| {
            let ends = members.get(&thread.tid);
            ends.is_some_and(|ends| ends * SELDOM >= most || used(thread) >= IDLE_USED)
        };
        let threads: Vec<_> = run.threads.iter().filter(is_member).collect();
        let busy: Accounts = threads.iter().flat_map(|thread| did(thread)).collect();
        let each = busy.total() / threads.len().max(1) as u64;
        let is_of_flow = |m: &&Message| (m.program, m.flow) == (program.program, flow.flow);
        let load = load_ns(run, is_of_flow, each) as f64;
        let (in_progress, used) = (total.sum() as f64 / load, each as f64 / load);
        let of_loop = run.sums.waits.iter().filter(|wait| {
            (wait.tgid, wait.account, wait.waker_tgid) == (program.tgid, POLL, program.tgid)
        });
        let ends = of_loop.map(|wait| wait.count).fold(0, u64::saturating_add);
        let ends = ends_of_readers(ends, program.tgid, &readers, by_thread);
        let is_theirs = |tid: &&u32| threads.iter().any(|thread| thread.tid == **tid);
        let of_members = answered.iter().filter(is_theirs).count() as u64;
        // Who answers may wake the loop as well, to look for the next request.
        let ends = ends.max(part_of(total.count(), of_members, answered.len() as u64));
        let readers = readers.len();
        let pool =
            Pool { program, flow, readers, threads, ends, in_progress, used, did: busy, total };
        pool.is_full().then_some(pool)
    }

    fn is_full(&self) -> bool {
        let ends = self.ends as f64 / self.total.count().max(1) as f64;
        let ready = self.did.sum_of(Account::is_waiting_for_cpu);
        // One thread with a pace of its own is rather one that has news for requests which wait for them.
        let is_pace = self.threads.len() == 1 && self.main() == SLEEP;
        !self.threads.is_empty()
            && !is_pace
            && ENDS.contains(&ends)
            && ready < self.did.total() / 2
            && self.claimable().total() >= self.did.total() / 2
            && self.used >= LEAST_USED
            && self.in_line() >= LEAST_IN_LINE
    }

    /// The part of the time of all requests in which none of them works on it.
    fn in_line(&self) -> f64 {
        1.0 - self.threads.len() as f64 / self.in_progress.max(f64::MIN_POSITIVE)
    }

    /// Of a thread, for each request, ns.
    fn job_ns(&self) -> u64 {
        self.did.total() / self.total.count().max(1)
    }

    /// What they did most.
    fn main(&self) -> Account {
        let work = self.did.sum_of(|account| class(account) == Class::Work);
        let others = self.did.iter().filter(|(account, _)| class(*account) != Class::Work);
        let largest = others.max_by_key(|(_, ns)| *ns);
        largest.filter(|(_, ns)| *ns > work).map_or(Account::User, |(account, _)| account)
    }

    fn did_in_words(&self) -> String {
        match self.main() {
            Account::User => "computes".to_owned(),
            account => format!("is {}", account.describe()),
        }
    }

    fn names(&self) -> String {
        let names = self.threads.iter().take(NAMED).map(|t| format!("{} (tid {})", t.comm, t.tid));
        let more = if self.threads.len() > NAMED { ", ..." } else { "" };
        format!("{}{more}", names.collect::<Vec<_>>().join(", "))
    }

    /// What is no other's cause of what they did: for a disk or a lock they wait themselves.
    fn claimable(&self) -> Accounts {
        let may_be = |account| account == SLEEP || class(account) == Class::Work;
        self.did.iter().filter(|(account, _)| may_be(*account)).collect()
    }

    fn claim(&self, case: &Case) -> Claim {
        let process = case.process_name(self.program.tgid);
        let (job, requests) = (self.job_ns(), self.total.count());
        let slowest =
            cost(case.slowest(), |one| match one.message.program == self.program.program {
                true => one.message.logic_ns().saturating_sub(job),
                false => 0,
            });
        let threads = counted(self.threads.len() as u64, "thread");
        let title = format!(
            "requests wait for {threads} of {process}, to which its {} them and which are busy all the \
             time: each {}",
            if self.readers > 1 { "readers hand" } else { "event loop hands" },
            self.did_in_words()
        );
        let mut claim = Claim::new(title, self.claimable(), requests);
        claim.takes_idle = true;
        claim.fix = Some(if self.main() == Account::User { COMPUTES } else { WAITS });
        claim.requests = Some(OfRequests { slowest, of_all: self.in_line() });
        claim.mechanism(format!(
            "{:.1} requests were in progress on average, and {threads} to work on them: by Little's law \
             {:.0} % of their time was a wait in line",
            self.in_progress,
            self.in_line() * 100.0
        ));
        let did = self.did.iter().filter(|(_, ns)| *ns >= self.did.total() / 50);
        let mut did: Vec<_> = did.collect();
        did.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let did = did.iter().map(|(account, ns)| {
            format!("{} {}", account.describe(), percent(*ns, self.did.total()))
        });
        claim.trigger(format!(
            "{} had something to do for {:.0} % of the time in which there were requests, {} for each \
             request: {}",
            self.names(),
            self.used.min(1.0) * 100.0,
            duration(job),
            did.collect::<Vec<_>>().join(", ")
        ));
        claim.saw(
            format!("requests of {}: {} until answered", self.flow.name, quantiles(&self.total)),
            "arrival, read and send of each request at its socket",
        );
        claim.saw(
            format!(
                "for {} these threads ended a sleep of the loop, or answered, {} times",
                counted(requests, "request"),
                count(self.ends)
            ),
            "waker at sched_waking; who sent the answer",
        );
        if self.main() == SLEEP {
            claim.doubt(
                0.75,
                "the line itself is not seen: that there is one follows from the numbers, and threads which \
                 bring news at their own pace to requests that wait for them look alike",
            );
        }
        let ready = self.did.sum_of(Account::is_waiting_for_cpu);
        if ready < self.did.total() / 5 {
            claim.rule_out(
                ids::CPU_RUNQUEUE,
                format!(
                    "these threads were without a CPU for {} only",
                    percent(ready, self.did.total())
                ),
            );
        }
        claim
    }
}

/// What a thread did that is no wait for work.
fn did(thread: &ThreadAccounts) -> Vec<(Account, u64)> {
    let is_for_work =
        |account| matches!(account, Account::Blocked(kind) if FOR_WORK.contains(&kind));
    thread.accounts.iter().filter(|(account, _)| !is_for_work(*account)).collect()
}

/// The thread that answered each request which was kept.
fn answered(case: &Case, program: &TracedProgram, flow: &MessageFlow) -> Vec<u32> {
    let of_flow = kept(case.run).filter(|m| (m.program, m.flow) == (program.program, flow.flow));
    let answered = of_flow.map(|message| {
        let handed = message.at_socket.as_ref().and_then(|at| at.handed);
        handed.map_or(message.tid, |handed| handed.tid)
    });
    answered.collect()
}

/// Of the sleeps in poll of a process that it ended itself those of the readers of a port: others may
/// wait there for the same jobs, such as who takes finished ones from a queue.
fn ends_of_readers(
    all: u64,
    tgid: u32,
    readers: &BTreeSet<u32>,
    by_thread: &BTreeMap<u32, Vec<&Outlier>>,
) -> u64 {
    let polls = by_thread.values().flatten().copied().filter(|wait| {
        let ended_here = wait.waker.as_ref().is_some_and(|waker| waker.tgid == tgid);
        wait.tgid == tgid && wait.blocked == Some(Blocked::Poll) && ended_here
    });
    let (theirs, others): (Vec<_>, Vec<_>) = polls.partition(|wait| readers.contains(&wait.tid));
    part_of(all, theirs.len() as u64, (theirs.len() + others.len()) as u64)
}

/// The threads that let the readers of a port go on, or answer for them, about as often as each other, and how
/// often each of them did.
fn members(
    tgid: u32,
    readers: &BTreeSet<u32>,
    by_thread: &BTreeMap<u32, Vec<&Outlier>>,
    answered: &[u32],
) -> BTreeMap<u32, usize> {
    let polls = readers.iter().filter_map(|reader| by_thread.get(reader)).flatten();
    let polls = polls.filter(|wait| wait.blocked == Some(Blocked::Poll));
    let wakers = polls.filter_map(|wait| wait.waker.as_ref());
    let wakers = wakers.filter(|waker| waker.tgid == tgid).map(|waker| waker.tid);
    let mut often = BTreeMap::<u32, usize>::new();
    for tid in wakers.chain(answered.iter().copied()).filter(|tid| !readers.contains(tid)) {
        *often.entry(tid).or_default() += 1;
    }
    let most = often.values().copied().max().unwrap_or(0);
    often.into_iter().filter(|(_, n)| n * EVENLY >= most).collect()
}

#[cfg(test)]
mod tests {
    use model::{HandOver, Outlier, Run, WaitSum};

    use super::*;
    use crate::testing::requests::{MS, request, served};
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, interval, wait};

    /// Of the pool: how many there are, how long each waits for work, and what it does else.
    struct Members(u32, u64, Account);

    /// For 4 s thread 11 reads requests, `in_progress` at a time, and each 20 ms one of the pool lets it
    /// go on to answer the one which is the longest there; so many times as often does the pool wake it.
    fn run(pool: Members, in_progress: u64, wakes: u64) -> Run {
        let Members(threads, idle_ns, account) = pool;
        let mut run = RunBuilder::new().thread(11, 10, &[(POLL, 4 * SECOND)]);
        for tid in 12..12 + threads {
            run = run.thread(tid, 10, &[(account, 4 * SECOND - idle_ns), (FUTEX, idle_ns)]);
        }
        let mut requests = Vec::new();
        for n in 0..200 {
            let took = in_progress * 20;
            requests.push(request(n % in_progress, 11, (n * 20).saturating_sub(took), 0, took));
            let by = Some(12 + n as u32 % threads);
            let mut sleep: Outlier = interval(11, POLL, n * 20 * MS, 20 * MS, by);
            sleep.waker.iter_mut().for_each(|waker| waker.tgid = 10);
            run = run.kept(sleep);
        }
        let polls = WaitSum { waker_tgid: 10, ..wait(10, POLL, 0, 200 * wakes, 4 * SECOND) };
        served(run.wait(polls).build(), requests)
    }

    fn found(pool: Members, in_progress: u64, wakes: u64) -> Option<Claim> {
        claim(&Case::new(&run(pool, in_progress, wakes)))
    }

    #[test]
    fn requests_in_line_for_threads_that_are_always_busy_are_found() {
        let run = run(Members(2, 0, SLEEP), 10, 1);
        let claim = claim(&Case::new(&run)).unwrap();
        assert!(claim.title.contains("for 2 threads of"), "{}", claim.title);
        assert_eq!(claim.lost.get(SLEEP), 8 * SECOND);
        assert_eq!(claim.fix, Some(WAITS));
        let of_all = claim.requests.unwrap().of_all;
        assert!((of_all - 0.8).abs() < 0.02, "{of_all}: 8 of 10 were in line");
        assert_eq!(crate::explain(&run).findings[0].cause, "worker-pool-full");
        assert_eq!(found(Members(2, 0, USER), 10, 1).unwrap().fix, Some(COMPUTES));
    }

    /// They are idle for 6 s before the load or after it.
    #[test]
    fn a_recording_may_be_longer_than_the_load() {
        let mut run = run(Members(2, 0, SLEEP), 10, 1);
        run.end.as_mut().unwrap().ended_ns = 10 * SECOND;
        for thread in run.threads.iter_mut().filter(|thread| thread.tid != 11) {
            thread.accounts.add(FUTEX, 6 * SECOND);
        }
        let of_all = claim(&Case::new(&run)).unwrap().requests.unwrap().of_all;
        assert!((of_all - 0.8).abs() < 0.02, "{of_all}: 8 of 10 were in line");
    }

    #[test]
    fn threads_that_wait_for_work_now_and_then_have_no_line() {
        assert!(found(Members(2, SECOND, SLEEP), 10, 1).is_none());
        assert!(found(Members(8, 0, SLEEP), 10, 1).is_none(), "nearly each request has a thread");
    }

    /// Another thread waits in poll for what the pool has done, and the pool answers itself.
    #[test]
    fn who_takes_finished_jobs_is_no_reader() {
        let mut run = run(Members(2, 0, SLEEP), 10, 1);
        for n in 0..200 {
            let mut sleep: Outlier = interval(30, POLL, n * 20 * MS, 20 * MS, Some(12));
            sleep.waker.iter_mut().for_each(|waker| waker.tgid = 10);
            run.outliers.push(sleep);
        }
        run.sums.waits.iter_mut().for_each(|wait| wait.count = 400);
        assert!(claim(&Case::new(&run)).is_some(), "200 of 400 are of the reader");
        run.outliers.iter_mut().filter(|wait| wait.tid == 30).for_each(|wait| wait.tid = 11);
        assert!(claim(&Case::new(&run)).is_none(), "twice for each request");
    }

    /// Debian's gRPC 1.51: a thread answers, and then wakes the loop, which looks for the next request.
    #[test]
    fn who_answers_and_wakes_the_loop_is_counted_once() {
        let mut run = run(Members(2, 0, SLEEP), 10, 1);
        for (n, message) in run.messages.slow.iter_mut().enumerate() {
            let handed = Some(HandOver { tid: 12 + n as u32 % 2, time_ns: None });
            message.at_socket.as_mut().unwrap().handed = handed;
        }
        assert!(claim(&Case::new(&run)).unwrap().title.contains("for 2 threads of"));
    }

    #[test]
    fn who_answers_now_and_then_and_is_idle_else_is_none_of_the_pool() {
        let with = |ends: usize, idle_ns| {
            let mut run = run(Members(2, 0, SLEEP), 10, 1);
            let mut timers = run.threads[0].clone();
            timers.tid = 40;
            timers.accounts = Accounts::from_iter([(FUTEX, idle_ns), (USER, 4 * SECOND - idle_ns)]);
            run.threads.push(timers);
            let polls = run.outliers.iter_mut().filter(|wait| wait.blocked == Some(Blocked::Poll));
            for waker in polls.filter_map(|wait| wait.waker.as_mut()).take(ends) {
                waker.tid = 40;
            }
            claim(&Case::new(&run)).map(|claim| claim.title)
        };
        let of_two = with(15, 4 * SECOND).unwrap();
        assert!(of_two.contains("for 2 threads of"), "{of_two}");
        assert!(with(60, 4 * SECOND).is_none(), "one of three waits for work");
        assert!(with(15, 0).unwrap().contains("for 3 threads of"), "it works, too");
    }

    #[test]
    fn what_goes_at_a_pace_of_its_own_is_no_pool() {
        assert!(found(Members(1, 0, SLEEP), 10, 1).is_none(), "it may bring news");
        assert!(found(Members(1, 0, USER), 10, 1).is_some());
        assert!(found(Members(2, 0, SLEEP), 10, 3).is_none(), "three times for each request");
    }
}
