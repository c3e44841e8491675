//! event-loop-blocked: requests wait in their sockets while one turn of the thread that reads them all
//! takes long.
//!
//! Redis, Node.js, nginx, asyncio and many others serve all connections with one thread (or one each
//! CPU): it asks which sockets have something to read (epoll_wait, poll, select), handles what there
//! is, and asks again. Whatever takes long within one such turn, a computation or a call that
//! waits, keeps all others waiting: their requests have arrived and nobody reads them. The thread is
//! not idle, and it waits for nothing that it shows; only the queues of the sockets tell.
//!
//! # Evidence
//!
//! Requests that waited for as long as the run's threshold or longer between their arrival at the
//! socket and their first read, all read by a thread that goes from connection to connection; and what
//! that thread did meanwhile: on a CPU, or asleep in which call. At least a quarter of the time of the
//! slowest requests, and a twentieth of the recording. The time of the thread is claimed, each
//! nanosecond once however many requests waited. A sleep in epoll counts where the requests came on connections that
//! the loop has read from before, with none in progress: it would be woken if it waited for them, so that is another
//! epoll (execSync of Node.js). Nor need a request be in its socket: a loop may read several, and then sleep in a
//! call for one of them (a child process, an answer, a timer; not poll or a futex, in which it may wait for its
//! next turn). Where more requests waited than were kept, the loop's time is estimated: the part of all requests
//! that waited, of the time in which there were any. What it waited for a disk, a lock or a CPU is left to
//! the causes of these.
//!
//! # Without whylag
//!
//!     ss -tn                                     # Recv-Q: what has arrived and was not read
//!     strace -p PID -T -r -e trace=epoll_wait,read,write   # gaps between epoll_wait and the next one
//!     redis-cli slowlog get                      # Redis; node: perf_hooks.monitorEventLoopDelay()
//!     PYTHONASYNCIODEBUG=1                       # asyncio logs callbacks of 100 ms and more
//!
//! # Sources
//!
//! epoll(7); libuv's design overview; Redis: "Diagnosing latency issues"; Kegel, The C10K problem.

use model::{Histogram, Metric, RecorderPart};

use super::held_up::held_up;
use crate::case::Case;
use crate::case::requests::{Busy, kept};
use crate::cause::{Cause, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::EVENT_LOOP_BLOCKED,
    title: "requests wait in their sockets while one turn of an event loop takes long",
    fix: COMPUTES,
    reproduce: "mysteries/bin/event-loop-blocked-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Requests]),
    look_alikes: &[],
    symptom: true,
    examine,
};

const COMPUTES: &str = "Take what computes for long out of the loop: into a thread or process of its own, \
                        in parts that let other requests pass, or by a request that does less (SCAN \
                        instead of KEYS). Or run more loops.";
const WAITS: &str = "Do not wait within the loop: use the asynchronous form of the call, or give it to a \
                     thread and let the loop go on.";

fn examine(case: &Case) -> Verdict {
    let held = held_up(case, true)?;
    let queue = &held.queue;
    let process = case.process_name(queue.program.tgid);
    let turns = turns(case, queue.program.tgid);
    let busy_ns = held.longest_ns();
    // While requests go on waiting one turn may follow the other.
    let turn_ns = turns.as_ref().and_then(Histogram::max).map_or(busy_ns, |max| max.min(busy_ns));
    let (turn, busy) = (duration(turn_ns), duration(busy_ns));
    let main = held.main(case);
    let told = match held.is_mostly_in_epoll() {
        // What looks like the end of a turn is the start of the wait within it.
        true => format!("for something else, up to {} until they are read", held.longest_wait()),
        false => format!("for up to {turn} in one turn"),
    };
    let title = format!("requests wait for {process}, whose event loop {main} {told}");
    let mut claim = held.claim(title);
    claim.fix = Some(if held.on_cpu() >= 0.5 { COMPUTES } else { WAITS });
    let spans: usize = queue.busy.iter().map(|busy| busy.spans.len()).sum();
    if !queue.waited.is_empty() {
        claim.mechanism(format!(
            "{} came while the loop was at something else, and waited {} in their sockets: {}, the \
             longest {busy}",
            counted(queue.waited.len() as u64, "request"),
            duration(queue.waited_ns()),
            counted(spans as u64, "such time")
        ));
    }
    let beside = kept(case.run).filter(|message| queue.slept_beside(message) > 0);
    let (n, ns) = beside.fold((0u64, 0u64), |(n, ns), message| {
        (n + 1, ns.saturating_add(queue.slept_beside(message)))
    });
    if n > 0 {
        claim.mechanism(format!(
            "{} had been read, and waited {} while the loop slept in a call for one of several",
            counted(n, "request"),
            duration(ns)
        ));
    }
    claim.trigger(format!("meanwhile {} {}", readers(case, &held.queue.busy), held.did()));
    held.evidence(case, &mut claim);
    claim.saw_if(
        turns.map(|turns| format!("{}: {}", counted(turns.count(), "turn"), quantiles(&turns))),
        "from a return of epoll_wait, poll or select to the next call",
    );
    held.rule_runqueue_out(&mut claim);
    Ok(claim)
}

/// `thread redis-server (tid 12) was`.
fn readers(case: &Case, busy: &[Busy]) -> String {
    match busy {
        [one] => {
            let thread = case.run.threads.iter().find(|thread| thread.tid == one.tid);
            format!("thread {} (tid {}) was", thread.map_or("?", |t| &t.comm), one.tid)
        }
        several => format!("{} were", counted(several.len() as u64, "loop")),
    }
}

/// How long the turns of the process are.
fn turns(case: &Case, tgid: u32) -> Option<Histogram> {
    let of_it = case.run.seconds.iter();
    let mut of_it = of_it.filter(|s| s.tgid == tgid && s.metric == Metric::LoopTurn);
    let mut all = of_it.next()?.histogram.clone();
    of_it.for_each(|second| all.merge(&second.histogram));
    Some(all)
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, ChainEnd, Message, Run, Syscall, SyscallCall, WaitSum};

    use super::*;
    use crate::testing::requests::{MS, PORT, request, served, served_at};
    use crate::testing::{RunBuilder, SECOND, USER, interval, wait};

    const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);
    const DISK: Account = Account::Blocked(Blocked::Disk);

    /// Each 100 ms three requests wait for 40 ms, for a turn that began when the first of them came.
    fn requests() -> Vec<Message> {
        let turn =
            |n: u64| (1..=3).map(move |link| request(link, 11, 100 * n + link, 40 - link, 1));
        (0..20).flat_map(turn).collect()
    }

    fn loop_that(does: Option<Account>) -> Run {
        let mut run = RunBuilder::new().thread(11, 10, &[(USER, 2 * SECOND), (RECEIVE, SECOND)]);
        for n in (0..20).filter(|_| does.is_some()) {
            let mut asleep = interval(11, does.unwrap(), 100 * n * MS, 40 * MS, None);
            let call = Syscall::named("recvfrom").unwrap();
            asleep.syscall = Some(SyscallCall { call, args: [0; 6], result: None });
            run = run.kept(asleep);
        }
        served(run.build(), requests())
    }

    #[test]
    fn what_the_loop_computes_meanwhile_is_claimed_once() {
        let run = loop_that(None);
        let claim = examine(&Case::new(&run)).unwrap();
        // From the first arrival of each turn on.
        assert_eq!(claim.lost.get(USER), 20 * 39 * MS);
        assert!(claim.title.contains("computes for up to 39.0 ms"), "{}", claim.title);
        assert_eq!(claim.fix, Some(COMPUTES));
        let slowest = claim.requests.unwrap().slowest;
        assert_eq!((slowest.with, slowest.of), (60, 60));
        assert!(slowest.share() > 0.9, "{slowest:?}");
        let found = crate::explain(&run);
        assert_eq!(found.findings[0].cause, "event-loop-blocked");
        assert_eq!(found.findings[0].requests, Some(slowest));
    }

    /// A loop at another port, whose requests wait longer, and for a tenth of their time.
    #[test]
    fn the_longest_waiting_hides_none_that_is_more_of_the_requests() {
        let mut run = loop_that(None);
        let accounts = [(USER, 3 * SECOND)].into_iter().collect();
        let other = model::ThreadAccounts { tid: 12, accounts, ..run.threads[0].clone() };
        run.threads.push(other);
        let slow = (0..30).map(|n| request(n % 3, 12, 100 * n, 100, 900)).collect();
        let run = served_at(run, PORT + 10, "port 8080", slow);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.requests.unwrap().slowest.at.as_deref(), Some("port 80"));
        assert_eq!(crate::explain(&run).findings[0].cause, "event-loop-blocked");
    }

    #[test]
    fn a_call_within_the_loop_is_named_and_the_fix_follows() {
        let run = loop_that(Some(RECEIVE));
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(RECEIVE), 20 * 39 * MS);
        assert!(claim.title.contains("waits in recvfrom"), "{}", claim.title);
        assert_eq!(claim.fix, Some(WAITS));
        assert_eq!(crate::explain(&run).findings[0].cause, "event-loop-blocked");
    }

    /// The loop sleeps in an epoll of its own (execSync of Node.js), unless all of these connections are new
    /// ones, which it may have left alone.
    #[test]
    fn another_epoll_within_a_turn_keeps_a_loop_from_connections_that_it_has_read() {
        let poll = Account::Blocked(Blocked::Poll);
        let mut run = loop_that(Some(poll));
        run.threads[0].accounts = [(USER, 2 * SECOND), (poll, SECOND)].into_iter().collect();
        for asleep in &mut run.outliers {
            asleep.syscall.as_mut().unwrap().call = Syscall::named("epoll_pwait").unwrap();
        }
        let claim = examine(&Case::new(&run)).unwrap();
        let told = "waits in epoll_pwait for something else, up to 39.0 ms until they";
        assert!(claim.title.contains(told), "{}", claim.title);
        assert_eq!(claim.lost.get(poll), 20 * 39 * MS);
        for message in run.messages.slow.iter_mut().chain(&mut run.messages.fast) {
            message.at_socket.as_mut().unwrap().is_first = true;
        }
        assert!(examine(&Case::new(&run)).is_err());
    }

    /// All of three connections are read at once (Tornado); then the loop waits for a child process.
    #[test]
    fn a_call_that_a_loop_waits_in_for_one_holds_up_the_others_that_it_has_read() {
        let run = |account, ms: u64, together: u64| {
            let mut run =
                RunBuilder::new().thread(11, 10, &[(USER, SECOND), (account, 2 * SECOND)]);
            let mut all = Vec::new();
            for n in 0..20u64 {
                run = run.kept(interval(11, account, (100 * n + 5) * MS, ms * MS, None));
                all.extend((1..=together).map(|link| request(link, 11, 100 * n + link, 0, 80)));
                all.push(request(9, 11, 100 * n + 90, 0, 1));
            }
            served(run.build(), all)
        };
        let child = Account::Blocked(Blocked::ChildWait);
        let several = run(child, 60, 3);
        let claim = examine(&Case::new(&several)).unwrap();
        assert_eq!(claim.lost.get(child), 20 * 60 * MS);
        assert!(claim.chain[0].text.starts_with("60 requests had been read, and waited 3.60 s"));
        assert!(claim.requests.unwrap().slowest.share() > 0.7);
        assert_eq!(crate::explain(&several).findings[0].cause, "event-loop-blocked");
        assert!(examine(&Case::new(&run(child, 60, 1))).is_err(), "nobody else waits");
        let futex = Account::Blocked(Blocked::Futex);
        assert!(examine(&Case::new(&run(futex, 60, 3))).is_err(), "a scheduler's own wait");
        let timer = Account::Blocked(Blocked::TimerSleep);
        assert!(examine(&Case::new(&run(timer, 60, 3))).is_ok());
        assert!(examine(&Case::new(&run(timer, 9, 3))).is_err(), "between two looks");
    }

    /// Most requests are not kept: the part of all that waited is that of the time.
    #[test]
    fn turns_that_only_requests_that_were_not_kept_met_count_as_well() {
        let claimed = |times: usize| {
            let few = requests().into_iter().step_by(10).collect();
            let run = RunBuilder::new().thread(11, 10, &[(USER, 2 * SECOND), (RECEIVE, SECOND)]);
            let mut run = served(run.build(), few);
            for second in &mut run.messages.seconds {
                let values = second.histogram.clone();
                (1..times).for_each(|_| second.histogram.merge(&values));
            }
            examine(&Case::new(&run)).unwrap().lost.get(USER)
        };
        assert_eq!(claimed(1), (39 + 38 + 37) * 2 * MS);
        assert_eq!(claimed(10), 1_640 * MS, "all the time from the first to the last");
    }

    /// Waits of the disk that are too short to be kept whole take three quarters of the turns.
    #[test]
    fn a_loop_that_waits_for_short_times_does_not_compute() {
        let mut run = loop_that(None);
        run.threads[0].accounts =
            [(USER, SECOND / 2), (DISK, 3 * SECOND / 2), (RECEIVE, SECOND)].into_iter().collect();
        let absent = examine(&Case::new(&run)).unwrap_err();
        assert!(absent.0.contains("of that only"), "{}", absent.0);
    }

    #[test]
    fn a_disk_or_a_cpu_that_the_loop_waits_for_has_a_cause_of_its_own() {
        for account in [DISK, Account::RunnablePreempted] {
            let run = loop_that(Some(account));
            let absent = examine(&Case::new(&run)).unwrap_err();
            assert!(absent.0.contains("of that only"), "{}", absent.0);
        }
    }

    /// Another thread has as much idle time in the account, which is no room for a second claim.
    #[test]
    fn a_lock_that_the_loop_waits_for_is_the_locks_alone() {
        const FUTEX: Account = Account::Blocked(Blocked::Futex);
        let run = |lock_like| {
            let lock = WaitSum {
                by_waiter: lock_like,
                lock_like,
                ends: [(ChainEnd::Cpu, 800 * MS)].into(),
                ..wait(10, FUTEX, 0x1000, 20, 800 * MS)
            };
            let mut run = RunBuilder::new()
                .thread(11, 10, &[(USER, 2 * SECOND), (FUTEX, SECOND)])
                .thread(12, 10, &[(FUTEX, 3 * SECOND)])
                .wait(lock);
            for n in 0..20 {
                let mut asleep = interval(11, FUTEX, 100 * n * MS, 40 * MS, None);
                asleep.object = 0x1000;
                run = run.kept(asleep);
            }
            served(run.build(), requests())
        };
        assert!(examine(&Case::new(&run(0))).is_ok());
        let absent = examine(&Case::new(&run(20))).unwrap_err();
        assert!(absent.0.contains("of that only"), "{}", absent.0);
    }

    #[test]
    fn requests_that_are_read_at_once_wait_for_nobody() {
        let quick = (0..60).map(|n| request(n % 3, 11, 50 * n, 0, 30)).collect();
        let run = RunBuilder::new().thread(11, 10, &[(USER, 2 * SECOND)]).build();
        assert!(examine(&Case::new(&served(run, quick))).is_err());
        let none = RunBuilder::new().thread(11, 10, &[(USER, 2 * SECOND)]).build();
        assert!(examine(&Case::new(&none)).unwrap_err().0.contains("no requests were seen"));
    }

    #[test]
    fn a_turn_now_and_then_is_no_finding() {
        let few = (0..12).map(|n| request(n % 3, 11, 300 * n, 4, 1)).collect();
        let run = RunBuilder::new().thread(11, 10, &[(USER, 2 * SECOND)]).build();
        assert!(crate::explain(&served(run, few)).findings.is_empty(), "48 ms of 4 s");
    }
}
