//! thundering-herd: one event wakes many threads that wait in poll or epoll, or for a condition, and one gets it.
//!
//! The others find nothing. Either they come out of the wait and their read or accept fails with
//! EAGAIN, or, more often, the kernel looks once more on their behalf, finds nothing and puts them
//! to sleep again within the same call. The second kind shows only as sleeps after which the call
//! did not return.
//!
//! A wakeup is useful if the call returned and the thread then got something. A loop that reads
//! until EAGAIN (edge-triggered epoll) has a successful read in each turn, and so no useless one.
//!
//! # Evidence
//!
//! Of threads that sleep in hardly anything but poll or epoll: how often they were woken, how often
//! the call returned, and how many reads and accepts then failed with EAGAIN. A wake-up is
//! useless if the thread got nothing afterwards. It is a herd if several threads are woken and more
//! than half of their wake-ups are useless. Of a condition variable: threads that are woken together with
//! others, and two of three times wait for the same again within moments.
//!
//! # Without whylag
//!
//!     strace -f -e trace=epoll_wait,epoll_pwait,accept4,read -p PID    # EAGAIN after the wait
//!     grep ctxt /proc/PID/task/*/status
//!
//! # Sources
//!
//! epoll_ctl(2) (EPOLLEXCLUSIVE); fs/eventpoll.c.

mod condition;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{
    Account, Accounts, Blocked, Histogram, Metric, RecorderPart, Run, Syscall, ThreadAccounts,
    part_of,
};

use crate::case::Case;
use crate::case::in_words::stacks;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::THUNDERING_HERD,
    title: "one event wakes many threads, and one of them gets it",
    fix: "Watch the shared socket or eventfd with EPOLLEXCLUSIVE, or from one epoll that all \
          threads wait on, or give each thread a queue of its own (SO_REUSEPORT for listening \
          sockets).",
    reproduce: "mysteries/bin/thundering-herd-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls]).and_histograms(),
    look_alikes: &[],
    symptom: false,
    examine,
};

const POLL: Account = Account::Blocked(Blocked::Poll);
/// Calls that wait for several files.
const WAITS: [&str; 7] =
    ["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"];
/// Calls that take one event, and fail with EAGAIN when somebody else has it.
const TAKES: [&str; 8] =
    ["read", "readv", "accept", "accept4", "recvfrom", "recvmsg", "recvmmsg", "mq_timedreceive"];
const EAGAIN: i32 = 11;
/// Fewer threads than this are no herd.
const HERD: u64 = 3;

/// Processes that are looked at.
const LOOKED_AT: usize = 256;

/// Threads of a process that hardly ever sleep but in poll or epoll, and what woke them.
struct Herd {
    tgid: u32,
    threads: u64,
    /// Times they were woken.
    wakeups: u64,
    /// Returns from poll and epoll, of the whole process.
    returns: u64,
    /// Attempts to take an event that failed with EAGAIN.
    refused: u64,
    /// Returns after which the thread got something.
    useful: u64,
}

impl Herd {
    fn new(run: &Run, tgid: u32) -> Herd {
        let members = || run.threads.iter().filter(|t| t.tgid == tgid && is_member(t, POLL));
        let slept = members().fold(0u64, |sum, t| sum.saturating_add(t.sleeps));
        // Short waits for something else among them, as far as they are counted.
        let others = run.sums.waits.iter().filter(|w| w.tgid == tgid && w.account != POLL);
        let others = others.fold(0u64, |sum, w| sum.saturating_add(w.count));
        let returns =
            WAITS.iter().fold(0u64, |sum, call| sum.saturating_add(calls(run, tgid, call)));
        let (mut refused, mut taken) = (0u64, 0u64);
        for call in TAKES {
            let failed = failed(run, tgid, call);
            if failed > 0 {
                refused = refused.saturating_add(failed);
                let done = calls(run, tgid, call).saturating_sub(failed);
                taken = taken.saturating_add(done);
            }
        }
        let for_nothing = refused.min(returns.saturating_sub(taken));
        Herd {
            tgid,
            threads: members().count() as u64,
            wakeups: slept.saturating_sub(others),
            returns,
            refused,
            useful: returns.saturating_sub(for_nothing),
        }
    }

    fn useless(&self) -> u64 {
        self.wakeups.saturating_sub(self.useful)
    }

    /// Most wakeups of several threads were for nothing.
    fn is_herd(&self) -> bool {
        self.threads >= HERD && self.returns > 0 && self.useless() > self.wakeups / 2
    }
}

/// All but a twentieth of the thread's sleeping is waiting for that.
fn is_member(thread: &ThreadAccounts, account: Account) -> bool {
    let asleep = thread.accounts.sum_of(|account| matches!(account, Account::Blocked(_)));
    let there = thread.accounts.get(account);
    there > 0 && asleep - there <= asleep / 20
}

/// The processes with such threads that slept most often: to look at one takes a walk through all
/// threads and sums, and a run may have thousands.
fn members_most_woken(case: &Case) -> impl Iterator<Item = u32> {
    let mut slept = BTreeMap::<u32, u64>::new();
    for thread in case.whole().threads.iter().filter(|thread| is_member(thread, POLL)) {
        let sum = slept.entry(thread.tgid).or_default();
        *sum = sum.saturating_add(thread.sleeps);
    }
    let mut tgids: Vec<u32> =
        slept.keys().copied().filter(|tgid| case.process(*tgid).is_some()).collect();
    if tgids.len() > LOOKED_AT {
        tgids.sort_by_key(|tgid| Reverse(slept[tgid]));
        tgids.truncate(LOOKED_AT);
        tgids.sort_unstable();
    }
    tgids.into_iter()
}

/// The one with more wakeups for nothing.
fn examine(case: &Case) -> Verdict {
    match (in_poll(case), condition::examine(case)) {
        (Ok(claim), Some(condition)) if claim.waits < condition.waits => Ok(condition),
        (Err(_), Some(condition)) => Ok(condition),
        (verdict, _) => verdict,
    }
}

fn in_poll(case: &Case) -> Verdict {
    // Wakeups and calls are counted for a whole run only; a part of one has its share of them.
    let herds = members_most_woken(case).map(|tgid| Herd::new(case.whole(), tgid));
    let herds: Vec<Herd> = herds.collect();
    let Some(first) = herds.iter().filter(|h| h.is_herd()).max_by_key(|h| h.useless()) else {
        return Err(Absent(match herds.iter().max_by_key(|h| h.wakeups) {
            Some(h) if h.wakeups > 0 => format!(
                "of {} of {} that wait in poll or epoll, {} were for nothing",
                counted(h.wakeups, "wakeup"),
                counted(h.threads, "thread"),
                count(h.useless())
            ),
            _ => "no thread waits in poll or epoll most of the time".to_owned(),
        }));
    };
    let lost = price(case, first);
    let name = case.process_name(first.tgid);
    let ratio = first.wakeups as f64 / first.useful.max(1) as f64;
    let title =
        format!("each event wakes {ratio:.0} threads of {name}, and one of them has use for it");
    let mut claim = Claim::new(title, lost, first.useless());

    let queued = claim.lost.sum_of(Account::is_waiting_for_cpu);
    let ran = claim.lost.total().saturating_sub(queued);
    claim.mechanism(format!(
        "wakeups for nothing cost {} of waiting for a CPU, behind each other and behind the one \
         that had work, and {} of CPU time in the calls",
        duration(queued),
        duration(ran)
    ));
    claim.trigger(format!(
        "{} slept in poll or epoll and were woken {} times; {} of the wakeups led to something, \
         {} ({}) did not",
        counted(first.threads, "thread"),
        count(first.wakeups),
        count(first.useful),
        count(first.useless()),
        percent(first.useless(), first.wakeups)
    ));
    evidence(case, first, &mut claim);
    rule_out_runqueue(case, first.tgid, &mut claim);
    rule_out_locks(case, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, first: &Herd, claim: &mut Claim) {
    claim.saw(
        format!(
            "{} and {} from poll and epoll: {} wakeups ended within the call, where the kernel \
             found nothing",
            counted(first.wakeups, "wakeup"),
            counted(first.returns, "return"),
            count(first.wakeups.saturating_sub(first.returns))
        ),
        "sleeps counted at sched_switch, system call histograms",
    );
    claim.saw(
        format!("{} of reads and accepts failed with EAGAIN after that", count(first.refused)),
        "failed system calls (sys_exit)",
    );
    let delays = case.histogram(&Metric::RunQueueDelay);
    claim.saw_if(
        delays.map(|h: Histogram| format!("waiting for a CPU: {}", quantiles(&h))),
        "run-queue histogram (sched_waking, sched_switch)",
    );
    let (kernel, user) = stacks(case, POLL, |o| o.tgid == first.tgid, "");
    claim.saw_if(kernel, "kernel stack of a wait");
    claim.saw_if(user.map(|s| format!("called in {s}")), "user stack");
}

/// What the threads of a process waited for a CPU, and how much of it somebody was in front: of each wait as much
/// as the fastest took is left out.
fn busy_queue(case: &Case, tgid: u32) -> (u64, u64) {
    let queued = case.process(tgid).map_or(0, |a| a.sum_of(Account::is_waiting_for_cpu));
    let delays = case.histogram(&Metric::RunQueueDelay);
    let ordinary = delays.map_or(0, |h| h.count().saturating_mul(h.min().unwrap_or(0)));
    (queued.saturating_sub(ordinary), queued)
}

/// What the useless wakeups cost: their part of the members' waiting for a CPU, of their CPU time in
/// the calls that wait and that fail, and of their spinning for the locks of the queue.
///
/// Of each wait for a CPU as much as the fastest took is left out: that is the price of waking up
/// without anybody in front. A wait for an idle CPU to come back belongs to the loss, as that CPU
/// was woken for nothing, too.
fn price(case: &Case, herd: &Herd) -> Accounts {
    let takes = |call: Syscall| {
        let fails = |name: &&&str| failed(case.whole(), herd.tgid, name) > 0;
        TAKES.iter().filter(fails).any(|name| call.is_one_of(&[name]))
    };
    let (busy, queued) = busy_queue(case, herd.tgid);
    let mut sum = Accounts::new();
    for thread in case.run.threads.iter().filter(|t| t.tgid == herd.tgid && is_member(t, POLL)) {
        for (account, ns) in thread.accounts.iter() {
            let ns = match account {
                Account::RunnableWakeup | Account::RunnablePreempted => part_of(ns, busy, queued),
                Account::Spin => ns,
                Account::Syscall(call) if call.is_one_of(&WAITS) || takes(call) => ns,
                _ => 0,
            };
            sum.add(account, part_of(ns, herd.useless(), herd.wakeups));
        }
    }
    sum
}

/// Waiting for a CPU that another thread had: all of it, and behind threads of the same process.
fn ran_instead(case: &Case, tgid: u32) -> (u64, u64) {
    let runners = case.run.sums.runners.iter().filter(|r| r.tgid == tgid && r.runner_tgid != 0);
    runners.fold((0u64, 0u64), |(all, own), r| {
        let mine = if r.runner_tgid == tgid { r.ns } else { 0 };
        (all.saturating_add(r.ns), own.saturating_add(mine))
    })
}

fn rule_out_runqueue(case: &Case, tgid: u32, claim: &mut Claim) {
    let (all, own) = ran_instead(case, tgid);
    let idle = case.cpus().map_or(String::new(), |cpus| {
        format!("; CPUs were idle {} of the time", percent(cpus.idle_ns, cpus.total_ns))
    });
    if own >= all / 2 {
        claim.rule_out(
            ids::CPU_RUNQUEUE,
            format!(
                "{} of the waiting for a CPU was behind threads of the same process, which were \
                 woken for the same event{idle}",
                percent(own, all)
            ),
        );
    } else {
        let text = "most of the waiting for a CPU was behind other processes: it would be there \
                    without a herd, too (cpu-runqueue)";
        claim.doubt(0.6, text);
    }
}

fn rule_out_locks(case: &Case, claim: &mut Claim) {
    let locks = case.lost.get(Account::Blocked(Blocked::Futex));
    claim.rule_out(
        ids::FUTEX_CONVOY,
        format!(
            "the threads sleep in poll or epoll; waiting for locks came to {}",
            duration(locks)
        ),
    );
}

/// Calls of this name by a process.
fn calls(run: &Run, tgid: u32, name: &str) -> u64 {
    let Some(metric) = Syscall::named(name).map(Metric::Syscall) else { return 0 };
    let seconds = run.seconds.iter().filter(|s| s.tgid == tgid && s.metric == metric);
    seconds.fold(0, |sum, second| sum.saturating_add(second.histogram.count()))
}

/// How many of them failed with EAGAIN.
fn failed(run: &Run, tgid: u32, name: &str) -> u64 {
    let errors = run.sums.call_errors.iter().filter(|e| e.tgid == tgid && e.errno == EAGAIN);
    let errors = errors.filter(|e| e.call.is_one_of(&[name]));
    errors.fold(0, |sum, error| sum.saturating_add(error.count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, runner, wait};

    const WOKEN: Account = Account::RunnableWakeup;

    /// 8 threads of process 10, each woken `wakeups` times.
    fn pollers(wakeups: u64) -> RunBuilder {
        let mut builder = RunBuilder::new().runner(runner(10, 10, 900, 8 * SECOND));
        for tid in 10..18 {
            let accounts = [(USER, SECOND), (WOKEN, SECOND), (POLL, 2 * SECOND)];
            builder = builder.thread(tid, 10, &accounts).sleeps(wakeups);
        }
        builder
    }

    fn called(builder: RunBuilder, name: &str, times: usize) -> RunBuilder {
        let metric = Metric::Syscall(Syscall::named(name).unwrap());
        builder.values(metric, 5, &vec![1000; times])
    }

    #[test]
    fn wakeups_that_end_within_the_call_are_for_nothing() {
        let run = called(pollers(1000), "epoll_wait", 1000).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(WOKEN), claim.waits), (7 * SECOND, 7000));
        assert!(claim.title.starts_with("each event wakes 8 threads"), "{}", claim.title);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "cpu-runqueue"));
    }

    #[test]
    fn wakeups_that_end_in_eagain_are_for_nothing() {
        let run = called(called(pollers(1000), "epoll_wait", 8000), "accept4", 8000);
        let run = run.call_error(10, "accept4", EAGAIN, 6000).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(WOKEN), claim.waits), (6 * SECOND, 6000));
    }

    #[test]
    fn a_loop_that_reads_until_eagain_is_no_herd() {
        let run = called(called(pollers(1000), "epoll_wait", 8000), "read", 16_000);
        let run = run.call_error(10, "read", EAGAIN, 8000).build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.ends_with("8 threads that wait in poll or epoll, 0 were for nothing"));
    }

    #[test]
    fn exclusive_waits_and_other_sleeps_are_no_herd() {
        let run = called(pollers(1000), "epoll_wait", 7800).build();
        assert!(examine(&Case::new(&run)).is_err());
        let run = called(pollers(1000), "epoll_wait", 1000);
        let run = run.wait(wait(10, FUTEX, 1, 7000, SECOND / 100)).build();
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn waiting_behind_others_is_a_doubt() {
        let run = called(pollers(1000), "epoll_wait", 1000);
        let run = run.runner(runner(10, 66, 900, 80 * SECOND)).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.doubts.len(), 1);
    }
}
