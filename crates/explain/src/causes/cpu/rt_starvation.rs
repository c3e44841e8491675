//! rt-starvation: real-time threads have the CPU, and ordinary ones wait until they sleep.
//!
//! SCHED_FIFO and SCHED_RR come before every ordinary thread, for as long as they like. If one
//! never sleeps, the kernel takes the CPU from it for 50 ms of each second (sched_rt_runtime_us,
//! the fair server), so those who are bound to that CPU see gaps of 950 ms. Proven by the priority
//! of whoever had the CPU during the wait.
//!
//! # Evidence
//!
//! Waiting for a CPU during which a thread of a higher real-time priority had it, by the priority
//! of whoever ran (sched_switch); how long each of them had it; and the longest wait, which is 950
//! ms with the kernel's defaults when a real-time thread never sleeps. Waits for locks that starved
//! threads held are counted with it, if the one that has the CPU also comes before the waiter.
//!
//! # Without whylag
//!
//!     ps -eLo tid,cls,rtprio,psr,comm | awk '$2 == "FF" || $2 == "RR"'
//!     sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us
//!     perf sched record -a -- sleep 5; perf sched timehist
//!
//! # Sources
//!
//! sched(7); kernel/sched/rt.c; Documentation/scheduler/sched-rt-group.rst.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Accounts, Metric, Outlier, OutlierKind, RecorderPart, RunnerSum, part_of};

use crate::case::Case;
use crate::case::behind_holders::BehindHolders;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::RT_STARVATION,
    title: "a real-time thread keeps the CPU from ordinary ones",
    fix: "Let the real-time thread sleep (wait for its event instead of polling), give it a CPU \
          of its own (isolcpus, cpuset) and keep the others off it, or run it as an ordinary \
          thread or under SCHED_DEADLINE with a budget.",
    reproduce: "mysteries/bin/rt-starvation-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[
        LookAlike {
            cause: ids::CGROUP_THROTTLE,
            tell_apart: "read nr_throttled in cpu.stat of the program's cgroup before and after: \
                         only a quota raises it",
            mutual: true,
        },
        LookAlike {
            cause: ids::PRIORITY_INVERSION,
            tell_apart: "follow the longest lock wait of a real-time thread to the thread that \
                         ended it ('whylag explain --outlier N'): if that one waited for a CPU \
                         meanwhile, it is an inversion",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// A real-time thread that never sleeps leaves a gap of 950 ms by default; some tolerance.
const RT_GAP_NS: u64 = 900_000_000;
/// Waits this short on average are real-time threads that take turns, not one that never sleeps.
const SHORT_NS: u64 = 5_000_000;
/// Runners worth a line.
const RUNNERS_SHOWN: usize = 3;

/// Waiting for a CPU that real-time threads had.
struct Starvation<'a> {
    /// Those that had it, the longest first.
    runners: Vec<&'a RunnerSum>,
    /// All waiting for a CPU.
    queued_ns: u64,
    /// Of it: while they had it.
    starved_ns: u64,
    waits: u64,
    priorities: Priorities,
    /// Waiting for locks that starved threads held.
    behind: BehindHolders,
}

impl<'a> Starvation<'a> {
    fn of(case: &Case<'a>) -> Self {
        let queued_ns = case.accounts.sum_of(Account::is_runnable);
        let mut runners: Vec<&RunnerSum> =
            case.run.sums.runners.iter().filter(|r| starves(case, r)).collect();
        runners.sort_by_key(|runner| std::cmp::Reverse(runner.ns));
        let sum = |of: fn(&RunnerSum) -> u64| {
            runners.iter().fold(0u64, |sum, runner| sum.saturating_add(of(runner)))
        };
        let (starved_ns, waits) = (sum(|r| r.ns).min(queued_ns), sum(|r| r.count));
        let priorities = Priorities::of(case);
        let behind = behind_starved(case, &priorities);
        Starvation { runners, queued_ns, starved_ns, waits, priorities, behind }
    }

    fn lost(&self, case: &Case) -> Accounts {
        let queued = case.accounts.iter().filter(|(account, _)| Account::is_runnable(*account));
        let starved =
            queued.map(|(account, ns)| (account, part_of(ns, self.starved_ns, self.queued_ns)));
        let mut lost: Accounts = starved.collect();
        lost.merge(&self.behind.accounts);
        lost
    }
}

fn examine(case: &Case) -> Verdict {
    let found = Starvation::of(case);
    let Some(first) = found.runners.first().filter(|_| found.starved_ns > 0) else {
        return Err(Absent(format!(
            "no real-time thread of a higher priority had the CPU during {} of waiting for one",
            duration(found.queued_ns)
        )));
    };
    let hog = case.runner_name(first.runner_tgid, &first.runner_comm);
    let title = format!(
        "{} waits for a CPU that {hog} has at real-time priority {}",
        case.process_name(first.tgid),
        first.realtime
    );
    let waits = found.waits.saturating_add(found.behind.count);
    let mut claim = Claim::new(title, found.lost(case), waits);
    claim.mechanism(format!(
        "threads that were ready to run waited {}{} while real-time threads of higher priority had \
         their CPU: {}{}",
        duration(found.starved_ns),
        case.error_of_runners(found.starved_ns),
        counted(found.waits, "wait"),
        match found.behind.accounts.total() {
            0 => String::new(),
            ns => format!("; others waited {} for locks that those had", duration(ns)),
        }
    ));
    claim.trigger(format!(
        "{hog} runs at real-time priority {} and gives way to nobody below it",
        first.realtime
    ));
    evidence(case, &found, &mut claim);
    rule_out(case, found.queued_ns, found.starved_ns, &mut claim);
    if found.starved_ns / found.waits.max(1) < SHORT_NS {
        claim.doubt(
            0.8,
            "the waits are short: the real-time threads do sleep, and may be right to run",
        );
    }
    Ok(claim)
}

fn evidence(case: &Case, found: &Starvation, claim: &mut Claim) {
    for runner in found.runners.iter().take(RUNNERS_SHOWN) {
        claim.saw(
            format!(
                "{}, real-time priority {}, had the CPU for {} of the waiting{} ({})",
                case.runner_name(runner.runner_tgid, &runner.runner_comm),
                runner.realtime,
                duration(runner.ns),
                case.error_of_runners(runner.ns),
                counted(runner.count, "wait")
            ),
            "sched_switch: who ran while the thread was ready, and its priority",
        );
    }
    let delays = case.histogram(&Metric::RunQueueDelay);
    claim.saw_if(
        delays.as_ref().map(|h| format!("waiting for a CPU: {}", quantiles(h))),
        "run-queue histogram (sched_waking, sched_switch)",
    );
    let starved =
        |o: &&Outlier| o.kind == OutlierKind::RunQueue && is_starved(&found.priorities, o, 0);
    let longest = case.run.outliers.iter().filter(starved).max_by_key(|o| o.duration_ns);
    let longest_ns = longest.map(|o| o.duration_ns).max(delays.and_then(|h| h.max()));
    if let Some(ns) = longest_ns.filter(|ns| *ns >= RT_GAP_NS) {
        let text = format!(
            "the longest wait took {}: the kernel leaves ordinary threads 50 ms of each second \
             when a real-time thread never sleeps",
            duration(ns)
        );
        claim.saw(text, "sched_rt_runtime_us");
    }
    claim.saw_if(longest.map(|o| in_words(case, o)), "longest wait for a CPU");
    claim.saw_if(found.behind.longest_chain.clone(), "outliers, from waiter to waker");
}

fn rule_out(case: &Case, queued: u64, starved: u64, claim: &mut Claim) {
    let ordinary = case.run.sums.runners.iter().filter(|r| r.realtime == 0 && r.runner_tgid != 0);
    let ordinary = ordinary.fold(0u64, |sum, r| sum.saturating_add(r.ns)).min(queued);
    if ordinary < starved {
        claim.rule_out(
            ids::CPU_RUNQUEUE,
            format!(
                "ordinary threads had the CPU for {} of {} of waiting for one, real-time threads \
                 for {}",
                duration(ordinary),
                duration(queued),
                duration(starved)
            ),
        );
    }
    claim.exclude(
        "CPU time stolen by the hypervisor",
        format!(
            "{} stolen from the threads by the hypervisor",
            duration(case.accounts.get(Account::Stolen))
        ),
    );
}

/// A runner that its waiters had to make way for: of real-time priority, above that of the threads
/// that waited.
fn starves(case: &Case, runner: &RunnerSum) -> bool {
    // Hosts have thousands of runners; few are real-time.
    runner.realtime > 0 && runner.realtime > waiting_priority(case, runner.tgid)
}

/// Priority at which most of a process's waiting for a CPU was done.
fn waiting_priority(case: &Case, tgid: u32) -> u8 {
    let mut waited = BTreeMap::<u8, u64>::new();
    for thread in case.threads_in(Account::is_runnable).filter(|thread| thread.tgid == tgid) {
        let ns = waited.entry(thread.realtime).or_default();
        *ns = ns.saturating_add(thread.accounts.sum_of(Account::is_runnable));
    }
    waited.into_iter().max_by_key(|(_, ns)| *ns).map_or(0, |(priority, _)| priority)
}

/// Time that threads waited for locks whose holders are starved, by one that also comes before the
/// waiter: if it does not, that is an inversion of priorities.
fn behind_starved(case: &Case, priorities: &Priorities) -> BehindHolders {
    let mut all = BehindHolders::default();
    for waiter in priorities.levels() {
        let behind = case.behind_holders(
            |victim| priorities.get(victim.tid) == waiter,
            |holder, account| {
                Account::is_runnable(account) && is_starved(priorities, holder, waiter)
            },
        );
        all.accounts.merge(&behind.accounts);
        all.count += behind.count;
        all.longest_chain = all.longest_chain.or(behind.longest_chain);
    }
    all
}

/// Waited for a CPU that one of higher real-time priority had, `least` at least.
fn is_starved(priorities: &Priorities, outlier: &Outlier, least: u8) -> bool {
    let own = priorities.get(outlier.tid);
    let by = outlier.ran_instead.first().map_or(0, |runner| runner.realtime);
    by > own && by >= least
}

/// Real-time priorities of the recorded threads.
pub(super) struct Priorities(BTreeMap<u32, u8>);

impl Priorities {
    pub(super) fn of(case: &Case) -> Self {
        let threads = case.run.threads.iter().filter(|thread| thread.realtime > 0);
        Priorities(threads.map(|thread| (thread.tid, thread.realtime)).collect())
    }

    /// 0 is an ordinary thread.
    pub(super) fn get(&self, tid: u32) -> u8 {
        self.0.get(&tid).copied().unwrap_or(0)
    }

    /// All that occur, and that of ordinary threads.
    pub(super) fn levels(&self) -> BTreeSet<u8> {
        self.0.values().copied().chain([0]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, interval, runner, wait};
    use model::{Runner, WaitSum};

    const QUEUED: Account = Account::RunnableWakeup;

    fn hog(realtime: u8) -> RunnerSum {
        RunnerSum { realtime, ..runner(10, 66, 4, 3 * SECOND) }
    }

    fn waiting() -> RunBuilder {
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (QUEUED, 4 * SECOND)])
    }

    fn has(claim: &Claim, cause: &str) -> bool {
        claim.ruled_out.iter().any(|r| r.cause == cause)
    }

    #[test]
    fn claims_what_was_waited_while_real_time_threads_ran() {
        let run = waiting().runner(hog(40)).runner(runner(10, 10, 9, SECOND)).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(QUEUED), claim.waits), (3 * SECOND, 4));
        assert!(
            claim
                .title
                .ends_with("that runner-66 (a thread of pid 66) has at real-time priority 40")
        );
        assert!(has(&claim, "cpu-runqueue") && claim.doubts.is_empty());
    }

    #[test]
    fn an_ordinary_hog_is_not_this() {
        let run = waiting().runner(hog(0)).build();
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn threads_of_the_same_or_a_higher_priority_are_not_starved() {
        let run = waiting().realtime(40).runner(hog(40)).build();
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn short_waits_are_a_doubt() {
        let many = RunnerSum { count: 10_000, ..hog(40) };
        let run = waiting().runner(many).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }

    #[test]
    fn those_who_wait_for_a_starved_holder_belong_to_it() {
        let ran = Runner { tid: 66, tgid: 66, comm: "hog".into(), realtime: 40, ns: SECOND };
        let starved = Outlier { ran_instead: vec![ran], ..interval(11, QUEUED, 0, SECOND, None) };
        let run = waiting()
            .thread(11, 10, &[(QUEUED, SECOND)])
            .runner(hog(40))
            .wait(WaitSum { lock_like: 1, ..wait(10, FUTEX, 0x10, 1, SECOND) })
            .interval(10, FUTEX, 0, SECOND, Some(11))
            .kept(starved)
            .thread(12, 10, &[(FUTEX, SECOND)])
            .build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(FUTEX), SECOND);
    }
}
