//! priority-inversion: a real-time thread waits for a lock whose holder is kept off the CPU by a
//! thread of lower priority than the waiter's.
//!
//! An ordinary mutex knows nothing of priorities: its holder is scheduled by its own, however
//! urgent those are who wait for it. Proven by three priorities: the waiter's is above that of
//! whoever had the CPU, and that is not below the holder's.
//!
//! # Evidence
//!
//! A lock wait of a thread with a real-time priority, followed to the thread that ended it; that
//! one was ready to run meanwhile and had no CPU; and the priority of whoever had the CPU is below
//! the waiter's and not below the holder's.
//!
//! # Without whylag
//!
//!     ps -Lo tid,cls,rtprio,comm -p PID      # the priorities of waiter and holder
//!     perf sched record -a -- sleep 5; perf sched timehist   # who ran while the holder was ready
//!
//! # Sources
//!
//! futex(2) (FUTEX_LOCK_PI); pthread_mutexattr_setprotocol(3p); Documentation/locking/pi-futex.rst.

use std::collections::BTreeSet;

use model::{Account, Outlier, RecorderPart, RunnerSum};

use crate::case::Case;
use crate::case::behind_holders::BehindHolders;
use crate::case::lost::{Class, class};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::cpu::rt_starvation::Priorities;
use crate::causes::ids;
use crate::text::{counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::PRIORITY_INVERSION,
    title: "a real-time thread waits for a lock whose holder is kept off the CPU",
    fix: "Use a lock that lends its holder the waiter's priority (PTHREAD_PRIO_INHERIT), run all \
          who take the lock at one priority, or share by something that needs no lock.",
    reproduce: "mysteries/bin/priority-inversion-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[LookAlike {
        cause: ids::CGROUP_THROTTLE,
        tell_apart: "read nr_throttled in cpu.stat of the lock holder's cgroup before and \
                         after: if it grew, the quota kept the holder off the CPU",
        mutual: false,
    }],
    symptom: false,
    examine,
};

/// Time that real-time threads waited for locks whose holders were ready to run, and did not
/// because one below the waiter had the CPU.
fn inverted(case: &Case, priorities: &Priorities) -> BehindHolders {
    let mut all = BehindHolders::default();
    for waiter in priorities.levels().into_iter().filter(|level| *level > 0) {
        let behind = inverted_at(case, priorities, waiter);
        all.accounts.merge(&behind.accounts);
        all.count += behind.count;
        // The highest priority comes last: its longest_chain is the one to show.
        all.longest_chain = behind.longest_chain.or(all.longest_chain);
    }
    all
}

/// The same of the threads of this priority.
fn inverted_at(case: &Case, priorities: &Priorities, waiter: u8) -> BehindHolders {
    let is_kept_by_less = |holder: &Outlier| {
        priorities.get(holder.tid) < waiter
            && holder.ran_instead.first().is_some_and(|runner| runner.realtime < waiter)
    };
    case.behind_holders(
        |victim| priorities.get(victim.tid) == waiter,
        |holder, account| Account::is_runnable(account) && is_kept_by_less(holder),
    )
}

fn examine(case: &Case) -> Verdict {
    let priorities = Priorities::of(case);
    let Some(highest) = priorities.levels().last().copied().filter(|level| *level > 0) else {
        return Err(Absent("no recorded thread has a real-time priority".to_owned()));
    };
    let inverted = inverted(case, &priorities);
    let lost = inverted.accounts;
    let ns = lost.total();
    if ns == 0 {
        return Err(Absent(
            "no real-time thread waited for a lock whose holder was kept off the CPU by one of \
             lower priority"
                .to_owned(),
        ));
    }
    let in_locks = case.lost.sum_of(|account| lost.get(account) > 0);
    let process = case.main_process(|account| lost.get(account) > 0).unwrap_or(0);
    let hog = hog(case, highest);
    let title = format!(
        "real-time threads of {} wait for a lock while {} keeps its holder off the CPU",
        case.process_name(process),
        hog.as_deref().unwrap_or("one of lower priority")
    );
    let count = inverted.count;
    let mut claim = Claim::new(title, lost, count);
    claim.is_urgent = ns >= wanted_ns(case, &priorities, ns) / 4;
    claim.mechanism(format!(
        "real-time threads waited {} ({}, mean {}) for locks whose holders were ready to run and \
         had no CPU",
        duration(ns),
        counted(count, "wait"),
        mean(ns, count)
    ));
    claim.trigger(format!(
        "{} has the CPU meanwhile: its priority is below the waiter's, up to {highest}, and the \
         lock does not lend its holder that",
        hog.as_deref().unwrap_or("one of lower priority")
    ));
    claim.saw_if(inverted.longest_chain, "outliers, from waiter to waker, and who ran instead");
    for thread in case.run.threads.iter().filter(|t| t.realtime == highest).take(3) {
        claim.saw(
            format!(
                "{} (tid {}) has real-time priority {}",
                thread.comm, thread.tid, thread.realtime
            ),
            "task_struct.prio",
        );
    }
    rule_out(case, ns, in_locks, &mut claim);
    Ok(claim)
}

/// What the threads of those priorities wanted that have such waits: what they ran, and what they lost.
fn wanted_ns(case: &Case, priorities: &Priorities, lost_ns: u64) -> u64 {
    let levels = priorities.levels().into_iter().filter(|level| *level > 0);
    let waiting: BTreeSet<u8> =
        levels.filter(|level| inverted_at(case, priorities, *level).count > 0).collect();
    let threads = case.run.threads.iter().filter(|thread| waiting.contains(&thread.realtime));
    let ran = threads.map(|thread| thread.accounts.sum_of(|a| class(a) == Class::Work));
    ran.fold(lost_ns, u64::saturating_add)
}

/// Who had the CPU longest instead of threads below `waiter`, being below it itself.
fn hog(case: &Case, waiter: u8) -> Option<String> {
    let below = |runner: &&RunnerSum| runner.runner_tgid != 0 && runner.realtime < waiter;
    let runner = case.run.sums.runners.iter().filter(below).max_by_key(|runner| runner.ns)?;
    let name = case.runner_name(runner.runner_tgid, &runner.runner_comm);
    Some(match runner.realtime {
        0 => name,
        priority => format!("{name}, real-time priority {priority},"),
    })
}

fn rule_out(case: &Case, ns: u64, in_locks: u64, claim: &mut Claim) {
    let against = format!(
        "of {} that was waited for these locks, {} ({}) was waiting for a holder without a CPU",
        duration(in_locks),
        duration(ns.min(in_locks)),
        percent(ns.min(in_locks), in_locks)
    );
    if ns > in_locks / 2 {
        claim.rule_out(ids::FUTEX_CONVOY, against);
    } else {
        claim.doubt(0.7, &format!("{against}: the lock may be held for long, too (futex-convoy)"));
    }
    let waiters = case.run.threads.iter().filter(|thread| thread.realtime > 0);
    let queued =
        waiters.fold(0u64, |sum, t| sum.saturating_add(t.accounts.sum_of(Account::is_runnable)));
    if queued < ns / 2 {
        for cause in [ids::CPU_RUNQUEUE, ids::RT_STARVATION] {
            let because = format!(
                "the real-time threads themselves waited {} for a CPU, {} for the lock",
                duration(queued),
                duration(ns)
            );
            claim.rule_out(cause, because);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, interval, runner, wait};
    use model::{Blocked, Runner, RunnerSum, WaitSum};

    const QUEUED: Account = Account::RunnablePreempted;

    /// 10, of priority `waiter`, waits 1 s for 11, which waits for a CPU that one of priority
    /// `hog` has.
    fn run(waiter: u8, holder: u8, hog: u8) -> model::Run {
        let ran = Runner { tid: 66, tgid: 66, comm: "hog".into(), realtime: hog, ns: SECOND };
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (FUTEX, SECOND)])
            .realtime(waiter)
            .thread(11, 10, &[(USER, SECOND), (QUEUED, SECOND)])
            .realtime(holder)
            .wait(WaitSum { lock_like: 1, ..wait(10, FUTEX, 0x10, 1, SECOND) })
            .interval(10, FUTEX, 0, SECOND, Some(11))
            .kept(Outlier { ran_instead: vec![ran], ..interval(11, QUEUED, 0, SECOND, None) })
            .runner(RunnerSum { realtime: hog, ..runner(10, 66, 1, SECOND) })
            .build()
    }

    #[test]
    fn claimed_when_one_between_waiter_and_holder_has_the_cpu() {
        let run = run(30, 0, 20);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(FUTEX), SECOND);
        assert!(
            claim
                .title
                .contains("while runner-66 (a thread of pid 66), real-time priority 20, keeps")
        );
        let chain = &claim.evidence[0].text;
        assert!(chain.contains("<- thread-11 (tid 11) runnable:preempted"), "{chain}");
        assert!(claim.ruled_out.iter().any(|r| r.cause == "futex-convoy"));
    }

    /// A controller that sleeps most of the time, beside a thread that computes all the time.
    #[test]
    fn a_real_time_thread_with_little_to_do_is_no_small_part_of_the_others() {
        const ASLEEP: Account = Account::Blocked(Blocked::TimerSleep);
        let found = |priority| {
            let mut run = run(priority, 0, if priority > 0 { 20 } else { 0 });
            let ms = SECOND / 1_000;
            let controller = [(USER, 300 * ms), (FUTEX, 150 * ms), (ASLEEP, 3_550 * ms)];
            run.threads[0].accounts = controller.into_iter().collect();
            run.threads[1].accounts =
                [(USER, 3_850 * ms), (QUEUED, 150 * ms)].into_iter().collect();
            let wait = &mut run.sums.waits[0];
            (wait.count, wait.lock_like, wait.ns, wait.max_ns) = (10, 10, 150 * ms, 15 * ms);
            run.sums.runners[0].ns = 150 * ms;
            let found = crate::explain(&run).findings;
            found.iter().any(|finding| finding.cause == CAUSE.id.as_str())
        };
        assert!(found(30));
        assert!(!found(0));
    }

    #[test]
    fn an_ordinary_hog_inverts_as_well() {
        assert!(examine(&Case::new(&run(30, 0, 0))).is_ok());
    }

    #[test]
    fn a_hog_above_the_waiter_is_starvation_and_not_this() {
        assert!(examine(&Case::new(&run(30, 0, 40))).is_err());
    }

    #[test]
    fn ordinary_threads_have_no_priority_to_invert() {
        let Absent(missing) = examine(&Case::new(&run(0, 0, 20))).unwrap_err();
        assert!(missing.contains("no recorded thread has a real-time priority"), "{missing}");
    }

    #[test]
    fn a_holder_of_the_same_priority_is_only_slow() {
        assert!(examine(&Case::new(&run(30, 30, 20))).is_err());
    }
}
