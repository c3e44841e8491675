//! What the recorder itself took from the threads that it watched.
//!
//! It is taken out of the run before the catalogue sees it: whylag is the culprit of no ordinary
//! finding. What it took is shown with them, and first where it matters.

use std::borrow::Cow;

use model::{OwnDelay, Run};

use super::finding::share;
use crate::part::run::PartialRun;

/// From this part of the wall time, and of the lost time (a fifth), on it matters.
const MATTERS: f64 = 0.01;
const MATTERS_OF_LOST: u64 = 5;

/// A run without the recorder.
pub(super) struct SetApart<'a> {
    pub run: Cow<'a, Run>,
    queued_ns: u64,
    locked_ns: u64,
}

impl SetApart<'_> {
    /// What the recorder took of this wall time, of which so much was lost.
    pub fn delay(&self, wall_ns: u64, lost_ns: u64) -> Option<OwnDelay> {
        let (queued_ns, locked_ns) = (self.queued_ns, self.locked_ns);
        let all = queued_ns.saturating_add(locked_ns);
        let wall_share = share(all.min(wall_ns), wall_ns);
        let matters = wall_share >= MATTERS && all >= lost_ns / MATTERS_OF_LOST;
        (all > 0).then_some(OwnDelay { queued_ns, locked_ns, wall_share, matters })
    }
}

/// Takes the recorder out of those who ran instead of a thread, or had a lock that it wanted. A
/// recorder that watches threads of its own (benchmarks, timers) is left in.
pub(super) fn set_apart(run: &Run) -> SetApart<'_> {
    let own = run.header.recorder_pid;
    let runners = run.sums.runners.iter().filter(|runner| runner.runner_tgid == own);
    let queued_ns = runners.fold(0, |sum: u64, runner| sum.saturating_add(runner.ns));
    let holds = run.sums.holds.iter().filter(|hold| hold.holder_tgid == own);
    let locked_ns = holds.fold(0, |sum: u64, hold| sum.saturating_add(hold.ns));
    let watches_itself = run.threads.iter().any(|thread| thread.tgid == own);
    if own == 0 || watches_itself || !is_in(run, own) {
        return SetApart { run: Cow::Borrowed(run), queued_ns: 0, locked_ns: 0 };
    }
    SetApart { run: Cow::Owned(without(run, own)), queued_ns, locked_ns }
}

/// The part without the recorder, given it set apart; `None` if it is not in the part.
pub(super) fn part_without<'a>(
    partial: &PartialRun<'a>,
    apart: &SetApart,
) -> Option<PartialRun<'a>> {
    let Cow::Owned(run) = &apart.run else { return None };
    Some(PartialRun { whole: partial.whole, run: run.clone(), scope: partial.scope.clone() })
}

fn is_in(run: &Run, own: u32) -> bool {
    let sums = &run.sums;
    sums.runners.iter().any(|runner| runner.runner_tgid == own)
        || sums.holds.iter().any(|hold| hold.holder_tgid == own)
        || sums.concurrent_calls.iter().any(|call| call.other_tgid == own)
        || run.outliers.iter().any(|outlier| {
            outlier.ran_instead.iter().any(|runner| runner.tgid == own)
                || outlier.holder.as_ref().is_some_and(|holder| holder.tgid == own)
        })
}

/// What is large is shared with `run`; its sums and outliers, of which there are some thousands, are
/// copied.
fn without(run: &Run, own: u32) -> Run {
    let mut run = run.clone();
    run.sums.runners.retain(|runner| runner.runner_tgid != own);
    run.sums.holds.retain(|hold| hold.holder_tgid != own);
    run.sums.concurrent_calls.retain(|call| call.other_tgid != own);
    for outlier in &mut run.outliers {
        outlier.ran_instead.retain(|runner| runner.tgid != own);
        outlier.holder = outlier.holder.take().filter(|holder| holder.tgid != own);
    }
    run
}

#[cfg(test)]
mod tests {
    use crate::testing::{RunBuilder, SECOND, USER, runner};
    use model::{Account, Run};

    const OWN: u32 = 500;

    fn run(own_ns: u64, other_ns: u64) -> Run {
        let queued = [(USER, SECOND), (Account::RunnablePreempted, own_ns + other_ns)];
        let mut run = RunBuilder::new()
            .thread(10, 10, &queued)
            .runner(runner(10, OWN, 900, own_ns))
            .runner(runner(10, 77, 900, other_ns))
            .build();
        run.header.recorder_pid = OWN;
        run
    }

    #[test]
    fn the_recorder_is_no_culprit_and_what_it_took_is_told() {
        let answer = crate::explain(&run(SECOND, 0));
        assert!(answer.findings.is_empty(), "{:?}", answer.findings);
        let delay = answer.own_delay.unwrap();
        assert_eq!((delay.queued_ns, delay.locked_ns), (SECOND, 0));
        assert!((delay.wall_share - 0.5).abs() < 1e-9 && delay.matters);
    }

    #[test]
    fn who_else_was_in_the_way_is_still_found() {
        let answer = crate::explain(&run(SECOND / 2, SECOND));
        assert_eq!(answer.findings[0].cause, "cpu-runqueue");
        assert_eq!(answer.findings[0].lost_ns, SECOND);
        assert!(!crate::explain(&run(SECOND / 10, SECOND)).own_delay.unwrap().matters);
        let texts: Vec<_> = answer.findings[0].evidence.iter().map(|e| e.text.as_str()).collect();
        assert!(texts.iter().all(|text| !text.contains("pid 500")), "{texts:?}");
    }

    #[test]
    fn what_is_large_is_not_copied() {
        let run = run(SECOND, 0);
        let apart = super::set_apart(&run);
        assert!(apart.run.sums.runners.len() < run.sums.runners.len());
        assert!(std::ptr::eq(apart.run.threads.as_slice(), run.threads.as_slice()));
        assert!(std::ptr::eq(&*apart.run.stacks, &*run.stacks));
    }

    #[test]
    fn threads_of_its_own_that_it_watches_are_like_others() {
        let mut run = run(SECOND, 0);
        run.threads.iter_mut().for_each(|thread| thread.tgid = OWN);
        run.sums.runners.iter_mut().for_each(|runner| runner.tgid = OWN);
        assert_eq!(crate::explain(&run).findings[0].cause, "cpu-runqueue");
    }
}
