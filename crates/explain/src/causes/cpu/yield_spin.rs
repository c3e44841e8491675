//! yield-spin: threads wait for something by calling sched_yield() again and again.
//!
//! The usual shape is a home-made lock whose holder is slow or off the CPU. sched_yield does not
//! sleep: it lets the others that are ready go first, so the waiters take turns on the CPUs, and
//! the holder has to wait for its turn among them. To the scheduler they are busy threads that
//! queue for a CPU; the difference is that they queue inside sched_yield.
//!
//! # Evidence
//!
//! The number of calls of sched_yield, the time from entry to exit, and of it the CPU time and the
//! time in which the callers were ready and others ran; at least two threads that spend more than a
//! fiftieth of their time in the call, or more time given way than used. Calls right before a send
//! of the same thread are a limit of its rate (rate-limit-burst) and are not claimed.
//!
//! # Without whylag
//!
//!     perf stat -e syscalls:sys_enter_sched_yield -p PID -- sleep 5
//!     strace -f -c -p PID
//!     perf record -g -p PID -- sleep 5   # who calls it
//!
//! # Sources
//!
//! sched_yield(2).

use model::{Account, Metric, RecorderPart, Syscall, ThreadAccounts};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::YIELD_SPIN,
    title: "threads wait by calling sched_yield() in a loop",
    fix: "Wait in the kernel: a mutex or a condition variable (or a futex of one's own) sleeps \
          until its holder wakes one waiter. And hold the lock for less time.",
    reproduce: "mysteries/bin/yield-spin-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls]).and_histograms(),
    look_alikes: &[
        LookAlike {
            cause: ids::FUTEX_CONVOY,
            tell_apart: "count the calls ('perf stat -e \
                         syscalls:sys_enter_sched_yield,syscalls:sys_enter_futex -p PID'): who \
                         queues for a mutex sleeps in futex and does not yield",
            mutual: false,
        },
        LookAlike {
            cause: ids::RT_STARVATION,
            tell_apart: "see who had the CPU while the callers of sched_yield were ready ('perf \
                         sched timehist' and 'ps -eLo tid,cls,rtprio,comm'): a thread of class FF \
                         or RR is starvation",
            mutual: false,
        },
        LookAlike {
            cause: ids::CGROUP_THROTTLE,
            tell_apart: "read nr_throttled in cpu.stat of the program's cgroup before and after: a \
                         quota counts there, sched_yield does not",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

const CALL: &str = "sched_yield";
/// What the call is in the kernel.
const FUNCTIONS: [&str; 2] = ["__do_sys_sched_yield", "do_sched_yield"];
/// A thread that spends more of its wall time in the call than 1 in so many spins.
const SPINS: u64 = 50;

/// What threads did in sched_yield.
struct Yields<'a> {
    account: Account,
    calls: u64,
    /// From entry to exit of all calls.
    wall_ns: u64,
    /// On a CPU within the call.
    running_ns: u64,
    /// Ready, while others ran.
    gave_way_ns: u64,
    /// Threads that do little else.
    spinners: Vec<&'a ThreadAccounts>,
}

impl<'a> Yields<'a> {
    fn of(case: &Case<'a>, syscall: Syscall) -> Self {
        let account = Account::Syscall(syscall);
        let (calls, wall_ns) = case.calls(CALL);
        let running_ns = case.accounts.get(account);
        // The time from entry to exit also has what a quota took: that is not the program's
        // yielding.
        let gave_way_ns = wall_ns
            .saturating_sub(running_ns)
            .saturating_sub(case.accounts.get(Account::Throttled))
            .min(case.accounts.get(Account::RunnablePreempted));
        let spins =
            |thread: &&ThreadAccounts| thread.accounts.get(account) > thread.wall_ns() / SPINS;
        let spinners = case.threads_in(|a| a == account).filter(spins).collect();
        Yields { account, calls, wall_ns, running_ns, gave_way_ns, spinners }
    }
}

fn measure<'a>(case: &Case<'a>) -> Result<Yields<'a>, Absent> {
    let Some(syscall) = Syscall::named(CALL) else {
        return Err(Absent("this processor's table of system calls has no sched_yield".to_owned()));
    };
    let yields = Yields::of(case, syscall);
    if yields.calls == 0 {
        return Err(Absent(match yields.running_ns {
            0 => "sched_yield was not called".to_owned(),
            ns => format!(
                "threads were {} on a CPU in sched_yield; how often they called it was not counted",
                duration(ns)
            ),
        }));
    }
    if yields.running_ns == 0 {
        return Err(Absent(format!(
            "{} of sched_yield, but no sample of a CPU fell into one",
            case.calls_in_words(yields.calls, "call")
        )));
    }
    let held = case.histogram(&Metric::HeldSend(syscall)).map_or(0, |held| held.sum());
    if held > yields.wall_ns / 2 {
        return Err(Absent(format!(
            "{} of sched_yield, most of them right before a send of the same thread: a limit of \
             its rate",
            case.calls_in_words(yields.calls, "call")
        )));
    }
    if yields.spinners.len() < 2 && yields.gave_way_ns < yields.running_ns {
        return Err(Absent(format!(
            "{} of sched_yield, {} in all, {} of it while others ran: {}",
            case.calls_in_words(yields.calls, "call"),
            duration(yields.wall_ns),
            duration(yields.gave_way_ns),
            match yields.spinners.len() {
                0 => "no thread spins with it",
                _ => "one thread alone spins with it, and may be polling for work",
            }
        )));
    }
    Ok(yields)
}

fn examine(case: &Case) -> Verdict {
    let yields = measure(case)?;
    let (calls, call) = (yields.calls, yields.account);
    let process = case.main_process(|account| account == call).unwrap_or(0);
    let title =
        format!("threads of {} wait by calling sched_yield in a loop", case.process_name(process));
    let lost = [(call, yields.running_ns), (Account::RunnablePreempted, yields.gave_way_ns)];
    let mut claim = Claim::new(title, lost.into_iter().collect(), calls);
    let threads = case.threads_in(|account| account == call).count() as u64;
    claim.mechanism(format!(
        "{} called sched_yield {} times, {} each: {} on a CPU for nothing, {} ready while others \
         had the CPU",
        counted(threads, "thread"),
        count(calls),
        mean(yields.wall_ns, calls),
        duration(yields.running_ns),
        duration(yields.gave_way_ns)
    ));
    let own = own_threads_ran(case);
    claim.trigger(format!(
        "they wait for each other: sched_yield does not sleep, and whoever lets them go on has to \
         queue for a CPU among them (threads of the same process had the CPU for {} of all \
         waiting for a CPU)",
        duration(own)
    ));
    evidence(case, &yields, &mut claim);
    rule_out(case, yields.gave_way_ns, yields.running_ns, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, yields: &Yields, claim: &mut Claim) {
    let (calls, call) = (yields.calls, yields.account);
    claim.saw(
        format!(
            "sched_yield: {}, {} from entry to exit",
            case.calls_in_words(calls, "call"),
            duration(yields.wall_ns)
        ),
        "system call histogram (sys_enter, sys_exit)",
    );
    for thread in most_expensive(&yields.spinners, call) {
        claim.saw(
            format!(
                "{} (tid {}): on a CPU in sched_yield for {} of its wall time, for itself {}, ready \
                 without a CPU {}",
                thread.comm,
                thread.tid,
                percent(thread.accounts.get(call), thread.wall_ns()),
                percent(thread.accounts.get(Account::User), thread.wall_ns()),
                percent(thread.accounts.sum_of(Account::is_waiting_for_cpu), thread.wall_ns())
            ),
            "accounts of the thread",
        );
    }
    let path = case.path_in_words(&FUNCTIONS, |path| path.account == call);
    claim.saw_if(path.map(|p| format!("called in {p}")), "samples of what ran");
}

fn rule_out(case: &Case, gave_way: u64, running: u64, claim: &mut Claim) {
    let queued = case.accounts.sum_of(Account::is_runnable);
    if gave_way >= queued / 2 {
        claim.rule_out(
            ids::CPU_RUNQUEUE,
            format!(
                "{} of {} of waiting for a CPU was inside sched_yield: given up, not taken away",
                duration(gave_way),
                duration(queued)
            ),
        );
    }
    if gave_way < running {
        claim.doubt(
            0.6,
            "the callers hardly let anybody go first: threads that poll for work by sched_yield, \
             and have none, look the same",
        );
    }
}

/// Waiting for a CPU that the waiting process's own threads had meanwhile.
fn own_threads_ran(case: &Case) -> u64 {
    let own = case.run.sums.runners.iter().filter(|r| r.runner_tgid == r.tgid);
    own.fold(0, |sum, runner| sum.saturating_add(runner.ns))
}

/// The two threads that were longest in the call.
fn most_expensive<'a>(threads: &[&'a ThreadAccounts], call: Account) -> Vec<&'a ThreadAccounts> {
    let mut sorted = threads.to_vec();
    sorted.sort_by_key(|thread| std::cmp::Reverse(thread.accounts.get(call)));
    sorted.truncate(2);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const PREEMPTED: Account = Account::RunnablePreempted;

    fn call() -> Account {
        Account::Syscall(Syscall::named(CALL).unwrap())
    }

    /// 100 calls of this length.
    fn yields(builder: RunBuilder, ns: u64) -> RunBuilder {
        builder.values(Metric::Syscall(Syscall::named(CALL).unwrap()), 5, &[ns; 100])
    }

    #[test]
    fn claims_the_calls_and_the_waiting_inside_them_only() {
        let mut builder = RunBuilder::new();
        for tid in [10, 11] {
            let accounts = [(USER, SECOND), (call(), SECOND / 2), (PREEMPTED, 3 * SECOND)];
            builder = builder.thread(tid, 10, &accounts);
        }
        // 5 s from entry to exit, 1 s of it running: of 6 s preempted, 4 s were in the call.
        let run = yields(builder, SECOND / 20).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(call()), claim.lost.get(PREEMPTED)), (SECOND, 4 * SECOND));
        assert!(claim.ruled_out.iter().any(|r| r.cause == "cpu-runqueue"));
        assert!(claim.doubts.is_empty());
    }

    #[test]
    fn calls_without_a_histogram_are_not_taken_for_none() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (call(), SECOND)]);
        let lost = run.lost(model::Losses::VALUES, 1_000, 1_000).build();
        let Absent(missing) = examine(&Case::new(&lost)).unwrap_err();
        assert!(missing.contains("1.00 s on a CPU in sched_yield"), "{missing}");
        let standing = crate::why_not(&lost, "yield-spin").unwrap().standing;
        let model::Standing::NotLookedFor { because } = standing else { panic!("{standing:?}") };
        assert_eq!(because, "1,000 values found no histogram");
    }

    #[test]
    fn one_thread_that_polls_alone_is_healthy() {
        let builder = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (call(), 2 * SECOND)]);
        let run = yields(builder, SECOND / 50).build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("polling for work"), "{missing}");
    }

    #[test]
    fn several_that_never_give_way_may_be_polling() {
        let builder = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (call(), 2 * SECOND)])
            .thread(11, 10, &[(USER, SECOND), (call(), 2 * SECOND)]);
        let run = yields(builder, SECOND / 25).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }

    #[test]
    fn threads_preempted_elsewhere_do_not_yield() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND)]).build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("not called"), "{missing}");
    }
}
