//! Waiting for a CPU: how long, how often, who ran meanwhile, and whether a CPU was to be had.

use std::collections::BTreeMap;

use model::{Account, Histogram, Metric, part_of};

use super::{Case, Cpus};
use crate::cause::Absent;
use crate::text::duration;

/// A wait as long as a running thread keeps the CPU from one that was just woken, and less.
const SHORT_NS: u64 = 100_000;
/// The scheduler's slice before it is scaled with the number of CPUs (kernel/sched/fair.c,
/// sysctl_sched_base_slice): so long a running thread may keep the CPU from one that was just made.
/// Threads that compete for a CPU wait for whole slices.
const SLICE_NS: u64 = 700_000;
/// CPUs that are idle for one part in so many had room for whoever waited a moment.
const IDLE_PART: u64 = 10;

/// Who ran instead, in nanoseconds of waiting.
#[derive(Default)]
pub struct Ran {
    pub own: u64,
    /// Other processes that are recorded as well: children, or workers of the same server.
    pub recorded: u64,
    pub other: u64,
    /// whylag itself: what recording costs stands elsewhere, and is no cause.
    pub recorder: u64,
    /// The idle task: the CPU was free and the thread was being brought onto it.
    pub idle: u64,
}

impl Ran {
    /// Somebody but whylag was on the CPU.
    fn by_others_and_own(&self) -> u64 {
        self.own.saturating_add(self.recorded).saturating_add(self.other)
    }

    /// What is recorded waits for itself.
    pub fn is_mostly_recorded(&self) -> bool {
        self.own.saturating_add(self.recorded) >= self.other
    }
}

/// Waiting for a CPU in a run.
pub struct Queue {
    /// The process that waited longest.
    pub process: u32,
    pub waited_ns: u64,
    /// Of it: while someone was seen on the CPU.
    pub claimed_ns: u64,
    pub waits: u64,
    pub ran: Ran,
    pub delays: Option<Histogram>,
    /// Nothing is known of who ran: thread states were sampled.
    pub unseen: bool,
}

impl Queue {
    pub fn of(case: &Case) -> Result<Queue, Absent> {
        let waited_ns = case.accounts.sum_of(Account::is_runnable);
        let Some(process) = case.main_process(Account::is_runnable) else {
            return Err(Absent("no thread waited for a CPU".to_owned()));
        };
        let unseen = case.run.sums.runners.is_empty() && case.run.header.sampled;
        let ran = who_ran(case);
        let claimed_ns = if unseen { waited_ns } else { ran.by_others_and_own() };
        if claimed_ns == 0 {
            return Err(Absent(format!(
                "all waiting for a CPU together is {}, and no other thread was seen on the CPU \
                 meanwhile",
                duration(waited_ns)
            )));
        }
        let delays = case.histogram(&Metric::RunQueueDelay);
        // Several may have run in one wait; and not in each wait did anybody run.
        let nobody = [0, case.run.header.recorder_pid];
        let seen = case.run.sums.runners.iter().filter(|r| !nobody.contains(&r.runner_tgid));
        let pieces = seen.fold(0u64, |sum, r| sum.saturating_add(r.count));
        let counted = delays.as_ref().map(|h| h.count());
        let waits = match unseen {
            true => counted.unwrap_or(0),
            false => pieces.min(counted.unwrap_or(pieces)),
        };
        Ok(Queue { process, waited_ns, claimed_ns, waits, ran, delays, unseen })
    }

    /// The scheduler put whoever it woke behind another, beside a CPU that was idle: the fewer CPUs are
    /// busy, the longer such a wait may be.
    pub fn is_of_placement(&self, case: &Case) -> bool {
        let mean_ns = self.claimed_ns / self.waits.max(1);
        case.cpus_for(self.process).is_some_and(|cpus| {
            let short_ns = if cpus.are_mostly_idle() { SLICE_NS } else { SHORT_NS };
            cpus.idle_ns > cpus.total_ns / IDLE_PART && mean_ns < short_ns
        })
    }
}

impl Cpus {
    /// CPUs were there to be had.
    pub fn are_mostly_idle(self) -> bool {
        self.idle_ns > self.total_ns / 2
    }
}

/// Who had the CPU, process by process no more than its threads waited: recordings from before
/// waits were divided among all who ran have more.
fn who_ran(case: &Case) -> Ran {
    let mut by_process = BTreeMap::<u32, Ran>::new();
    for runner in &case.run.sums.runners {
        let ran = by_process.entry(runner.tgid).or_default();
        let part = match runner.runner_tgid {
            0 => &mut ran.idle,
            tgid if tgid == runner.tgid => &mut ran.own,
            tgid if tgid == case.run.header.recorder_pid => &mut ran.recorder,
            tgid if case.process(tgid).is_some() => &mut ran.recorded,
            _ => &mut ran.other,
        };
        *part = part.saturating_add(runner.ns);
    }
    let mut sum = Ran::default();
    for (tgid, ran) in by_process {
        let parts = [ran.own, ran.recorded, ran.other, ran.recorder, ran.idle];
        let all = parts.into_iter().fold(0u64, u64::saturating_add);
        let waited = case.process(tgid).map_or(0, |of| of.sum_of(Account::is_runnable));
        let cut = |ns| part_of(ns, waited.min(all), all);
        sum.own = sum.own.saturating_add(cut(ran.own));
        sum.recorded = sum.recorded.saturating_add(cut(ran.recorded));
        sum.other = sum.other.saturating_add(cut(ran.other));
        sum.recorder = sum.recorder.saturating_add(cut(ran.recorder));
        sum.idle = sum.idle.saturating_add(cut(ran.idle));
    }
    sum
}
