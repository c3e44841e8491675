//! cgroup-throttle: a CPU quota takes threads off the CPU until its next period.
//!
//! A cgroup with a quota of 20 ms in each 100 ms has used it up after 20 ms of all its threads
//! together; then they are off the CPU for the rest of the period, with CPUs idle. The kernel says
//! of a task that leaves the CPU whether it is throttled, so this is an account of its own.
//!
//! # Evidence
//!
//! Time in the account throttled: a thread leaves its CPU, is ready to run, and its task has the
//! flag of a throttled task. With it come the quota and period of the cgroup, and the growth of
//! nr_throttled in its cpu.stat. Waits for locks that a throttled thread held are counted with it.
//!
//! # Without whylag
//!
//!     cat /proc/PID/cgroup                      # which GROUP it is
//!     cat /sys/fs/cgroup/GROUP/cpu.{max,stat}   # nr_throttled, throttled_usec
//!     cat /sys/fs/cgroup/cpu/GROUP/cpu.stat     # version 1: nr_throttled, throttled_time
//!
//! # Sources
//!
//! Documentation/scheduler/sched-bwc.rst; Documentation/admin-guide/cgroup-v2.rst (cpu.max,
//! cpu.stat); kernel/sched/fair.c.

use model::{Account, Accounts, ChainEnd, Counter, Outlier, OutlierKind, RecorderPart, Run};

use crate::case::in_words::in_words;
use crate::case::{Case, Cpus};
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::CGROUP_THROTTLE,
    title: "a CPU quota (cgroup) stops the threads until its next period",
    fix: "Raise or remove the quota (cpu.max, cpu.cfs_quota_us; a container's CPU limit), run no \
          more threads than the quota has CPUs (GOMAXPROCS, thread pools), or allow bursts \
          (cpu.max.burst).",
    reproduce: "mysteries/bin/cgroup-throttle-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[],
    symptom: false,
    examine,
};

const THROTTLED: Account = Account::Throttled;

fn examine(case: &Case) -> Verdict {
    let own = case.accounts.get(THROTTLED);
    let grown = case.run.counter("cgroup.cpu.nr_throttled").map_or(0, |c| c.growth());
    let Some(process) = case.main_process(|account| account == THROTTLED) else {
        return Err(Absent(format!(
            "no thread was throttled by a CPU quota (nr_throttled of its cgroup grew by {grown})"
        )));
    };
    let behind = case.behind_holders(|_| true, |_, account| account == THROTTLED);
    let mut lost: Accounts = [(THROTTLED, own)].into_iter().collect();
    let waited = case.behind_at_least(&behind.accounts, ChainEnd::Throttled);
    lost.merge(&waited);

    let stops = || case.outliers_in(THROTTLED).filter(|o| o.kind == OutlierKind::RunQueue);
    let number = stops().count() as u64;
    let group = Group::throttled(case);
    let quota = group.as_ref().and_then(Group::quota);
    let title = format!(
        "{} is throttled by its cgroup's CPU quota{}",
        case.process_name(process),
        quota.as_ref().map_or(String::new(), |text| format!(" of {text}"))
    );
    let mut claim = Claim::new(title, lost, number.max(grown).saturating_add(behind.count));
    let threads = case.threads_in(|account| account == THROTTLED).count() as u64;
    claim.mechanism(format!(
        "{} ready to run, and kept off the CPU for {} until the quota was filled up again{}",
        counted(threads, "thread"),
        duration(own),
        match waited.total() {
            0 => String::new(),
            ns => format!(
                "; others waited {} for locks and answers of throttled threads",
                duration(ns)
            ),
        }
    ));
    claim.trigger(match &quota {
        Some(text) => format!("the cgroup may use {text}, and that was used up"),
        None => "the quota of the cgroup was used up; how large it is was not read".to_owned(),
    });
    let longest = stops().max_by_key(|o| o.duration_ns);
    claim.saw(
        format!(
            "throttled {}{}",
            counted(number, "time"),
            longest.map_or(String::new(), |o| format!(", longest {}", duration(o.duration_ns)))
        ),
        "task_struct.throttled at sched_switch",
    );
    if let Some(group) = &group {
        claim.saw(group.periods(), &group.throttled.source);
    }
    claim.saw_if(longest.map(|o| in_words(case, o)), "longest time throttled");
    claim.saw_if(behind.longest_chain, "outliers, from waiter to waker");
    rule_out(case, stops(), &mut claim);
    Ok(claim)
}

/// The cgroup whose quota stopped the threads: of those that were read the one that was stopped
/// most often. The recorder reads those of stopped threads first, and all above them with a quota.
struct Group<'a> {
    run: &'a Run,
    throttled: &'a Counter,
}

impl<'a> Group<'a> {
    fn throttled(case: &Case<'a>) -> Option<Self> {
        let throttled = case.run.counter("cgroup.cpu.nr_throttled")?;
        (throttled.growth() > 0).then_some(Group { run: case.run, throttled })
    }

    fn counter(&self, name: &str) -> Option<&'a Counter> {
        let directory = |source: &'a str| source.rsplit_once('/').map(|(directory, _)| directory);
        let own = directory(&self.throttled.source);
        self.run.sums.counters.iter().find(|c| c.name == name && directory(&c.source) == own)
    }

    /// `20 ms of CPU in each 100 ms`.
    fn quota(&self) -> Option<String> {
        let us = |name| self.counter(name).map(|c| c.last).filter(|us| *us < u64::MAX / 1000);
        let (quota, period) = (us("cgroup.cpu.quota_us")?, us("cgroup.cpu.period_us")?);
        (quota > 0 && period > 0).then(|| {
            format!("{} of CPU in each {}", duration(quota * 1000), duration(period * 1000))
        })
    }

    fn periods(&self) -> String {
        let periods = self.counter("cgroup.cpu.nr_periods").map_or(0, Counter::growth);
        match periods >= self.throttled.growth() {
            true => format!(
                "throttled in {} of {}",
                count(self.throttled.growth()),
                counted(periods, "period")
            ),
            false => format!("throttled in {}", counted(self.throttled.growth(), "period")),
        }
    }
}

fn rule_out<'o>(case: &Case, stops: impl Iterator<Item = &'o Outlier>, claim: &mut Claim) {
    let queued = case.accounts.sum_of(Account::is_runnable);
    let mut busy = 0u64;
    let mut all = 0u64;
    for stop in stops {
        all = all.saturating_add(stop.breakdown.get(THROTTLED));
        let ran = stop.ran_instead.iter().filter(|runner| runner.tgid != 0);
        busy = ran.fold(busy, |sum, runner| sum.saturating_add(runner.ns));
    }
    let idle = case.cpus().map_or(String::new(), |Cpus { idle_ns, total_ns, .. }| {
        format!("; the CPUs of the host were idle {} of the time", percent(idle_ns, total_ns))
    });
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "while threads were throttled, others had their CPU for {} of {}; waiting for a CPU \
             otherwise took {}{idle}",
            duration(busy.min(all)),
            duration(all),
            duration(queued)
        ),
    );
    claim.exclude(
        "CPU time stolen by the hypervisor",
        format!(
            "{} stolen from the threads by the hypervisor",
            duration(case.accounts.get(Account::Stolen))
        ),
    );
    claim.rule_out(
        ids::STOPPED_OR_TRACED,
        format!(
            "stopped or frozen threads are an account of their own: {}",
            duration(case.accounts.get(Account::Blocked(model::Blocked::Stopped)))
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, interval, wait};
    use model::WaitSum;

    const MS: u64 = 1_000_000;

    fn throttled() -> RunBuilder {
        let mut builder =
            RunBuilder::new().thread(10, 10, &[(USER, SECOND), (THROTTLED, 3 * SECOND)]);
        for n in 0..40 {
            builder = builder.interval(10, THROTTLED, n * 100 * MS, 75 * MS, None);
        }
        builder
    }

    #[test]
    fn claims_the_throttled_account_and_counts_the_stops() {
        let run = throttled()
            .counter("cgroup.cpu.quota_us", 20_000, 20_000)
            .counter("cgroup.cpu.period_us", 100_000, 100_000)
            .counter("cgroup.cpu.nr_throttled", 5, 45)
            .counter("cgroup.cpu.nr_periods", 5, 46)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(THROTTLED), claim.waits), (3 * SECOND, 40));
        assert!(claim.title.ends_with("of 20.0 ms of CPU in each 100 ms"), "{}", claim.title);
        assert!(claim.evidence.iter().any(|e| e.text == "throttled in 40 of 41 periods"));
    }

    #[test]
    fn those_who_wait_for_a_throttled_holder_belong_to_it() {
        let run = throttled()
            .thread(11, 10, &[(FUTEX, 70 * MS)])
            .wait(WaitSum { lock_like: 1, ..wait(10, FUTEX, 0x10, 1, 70 * MS) })
            .kept(interval(11, FUTEX, 0, 70 * MS, Some(10)))
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(FUTEX), 70 * MS);
    }

    #[test]
    fn the_quota_is_that_of_the_cgroup_that_was_throttled() {
        let counter = |name: &str, group: &str, first, last| Counter {
            name: format!("cgroup.cpu.{name}"),
            source: format!(
                "/sys/fs/cgroup/{group}/{}",
                if first == last { "cpu.max" } else { "cpu.stat" }
            ),
            first,
            last,
        };
        let mut run = throttled().build();
        run.sums.counters = vec![
            counter("quota_us", "recorder", 900_000, 900_000),
            counter("period_us", "recorder", 100_000, 100_000),
            counter("nr_throttled", "pod", 5, 45),
            counter("nr_periods", "pod", 5, 46),
            counter("quota_us", "pod", 20_000, 20_000),
            counter("period_us", "pod", 50_000, 50_000),
        ];
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.title.ends_with("of 20.0 ms of CPU in each 50.0 ms"), "{}", claim.title);
        // None of the cgroups that were read is the one.
        run.sums.counters.retain(|c| c.name.ends_with("_us") || c.growth() == 0);
        run.sums.counters.push(counter("nr_throttled", "recorder", 0, 0));
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.title.ends_with("its cgroup's CPU quota"), "{}", claim.title);
        assert!(!claim.evidence.iter().any(|e| e.text.contains("period")), "{claim:?}");
    }

    #[test]
    fn no_quota_is_assumed() {
        let claim_title = examine(&Case::new(&throttled().build())).unwrap().title;
        assert!(claim_title.ends_with("CPU quota"), "{claim_title}");
    }

    #[test]
    fn not_claimed_for_a_busy_cpu_or_a_stopped_thread() {
        for account in [Account::RunnablePreempted, Account::Blocked(model::Blocked::Stopped)] {
            let run =
                RunBuilder::new().thread(10, 10, &[(USER, SECOND), (account, SECOND)]).build();
            assert!(examine(&Case::new(&run)).is_err(), "{account}");
        }
    }
}
