//! The kept intervals of one thread within a window, cut so that none covers another.
//!
//! A long system call contains the sleeps inside it that were long themselves. Such a sleep says
//! where in the call its time was; of the call what is left is spread evenly over the rest of it.
//! An interval that leaves the window is cut at its edge.

use std::cmp::Reverse;

use model::{Account, Accounts, Outlier, OutlierKind, part_of};

/// Time that belongs to one interval and to no other.
#[derive(Debug)]
pub struct Clip<'a> {
    /// The interval, uncut.
    pub outlier: &'a Outlier,
    /// The time, all of it within the window.
    pub accounts: Accounts,
    /// False for what is left of a call beside its long sleeps: who woke it, who held the lock and
    /// the stacks are those of the sleeps.
    pub own_details: bool,
}

/// An interval, and the intervals of the same thread within it.
struct Nest<'a> {
    outer: &'a Outlier,
    inner: Vec<&'a Outlier>,
}

/// The clips of one thread's intervals within `from..to`. How long a lock was held is no interval
/// of a thread's own time, and is left out.
pub fn clips<'a>(outliers: impl Iterator<Item = &'a Outlier>, from: u64, to: u64) -> Vec<Clip<'a>> {
    let mut clips = Vec::new();
    for nest in nests(outliers) {
        let outer = nest.outer;
        if nest.inner.is_empty() {
            push(&mut clips, outer, cut(outer, from, to), true);
            continue;
        }
        let mut left = outer.breakdown.clone();
        let (mut gaps, mut gaps_within, mut at) = (0u64, 0u64, outer.start_ns);
        let mut gap = |begin: u64, end: u64| {
            gaps = gaps.saturating_add(end.saturating_sub(begin));
            let within = end.min(to).saturating_sub(begin.max(from));
            gaps_within = gaps_within.saturating_add(within);
        };
        for inner in nest.inner {
            gap(at, inner.start_ns);
            at = inner.end_ns();
            left = left
                .iter()
                .map(|(account, ns)| (account, ns.saturating_sub(inner.breakdown.get(account))))
                .collect();
            push(&mut clips, inner, cut(inner, from, to), true);
        }
        gap(at, outer.end_ns());
        let share = |(account, ns)| (account, part_of(ns, gaps_within, gaps));
        push(&mut clips, outer, left.iter().map(share).collect(), false);
    }
    clips
}

fn push<'a>(clips: &mut Vec<Clip<'a>>, outlier: &'a Outlier, accounts: Accounts, own: bool) {
    if accounts.total() > 0 {
        clips.push(Clip { outlier, accounts, own_details: own });
    }
}

/// Intervals in time order, none overlapping the next; the first to begin is kept where two
/// overlap without one containing the other (a clock that went backwards between CPUs).
fn nests<'a>(outliers: impl Iterator<Item = &'a Outlier>) -> Vec<Nest<'a>> {
    let mut sorted: Vec<_> = outliers.filter(|o| o.kind.is_own_time()).collect();
    sorted.sort_by_key(|o| (o.start_ns, Reverse(o.duration_ns)));
    let mut nests: Vec<Nest> = Vec::new();
    for outlier in sorted {
        let Some(last) = nests.last_mut() else {
            nests.push(Nest { outer: outlier, inner: Vec::new() });
            continue;
        };
        let taken = last.inner.last().map_or(last.outer.start_ns, |inner| inner.end_ns());
        if outlier.start_ns >= last.outer.end_ns() {
            nests.push(Nest { outer: outlier, inner: Vec::new() });
        } else if last.outer.kind == OutlierKind::Syscall
            && outlier.start_ns >= taken
            && outlier.end_ns() <= last.outer.end_ns()
        {
            last.inner.push(outlier);
        }
    }
    nests
}

/// The part of an interval within `from..to`. A sleep comes before the wait for a CPU that ends
/// it; of a call nothing is known of the order, so all its accounts are cut alike.
fn cut(outlier: &Outlier, from: u64, to: u64) -> Accounts {
    let (begin, end) = (outlier.start_ns, outlier.end_ns());
    if outlier.kind == OutlierKind::Syscall {
        let within = end.min(to).saturating_sub(begin.max(from));
        let share = |(account, ns)| (account, part_of(ns, within, outlier.duration_ns));
        return outlier.breakdown.iter().map(share).collect();
    }
    let mut parts: Vec<(Account, u64)> = outlier.breakdown.iter().collect();
    parts.sort_by_key(|(account, _)| account.is_waiting_for_cpu());
    let mut at = begin;
    let mut within = Accounts::new();
    for (account, ns) in parts {
        let until = at.saturating_add(ns);
        within.add(account, until.min(to).saturating_sub(at.max(from)));
        at = until;
    }
    within
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::interval;
    use model::Blocked;

    const FUTEX: Account = Account::Blocked(Blocked::Futex);
    const WAKING: Account = Account::RunnableWakeup;
    const CALL: Account = Account::Syscall(model::Syscall(202));
    const ALL: (u64, u64) = (0, u64::MAX);

    fn sum(clips: &[Clip]) -> Accounts {
        let mut sum = Accounts::new();
        clips.iter().for_each(|clip| sum.merge(&clip.accounts));
        sum
    }

    /// 1000..1100: 60 asleep, 30 in the run queue, 10 running; the sleep is an interval of its own.
    fn call_with_sleep() -> Vec<Outlier> {
        let call = Outlier {
            kind: OutlierKind::Syscall,
            breakdown: [(FUTEX, 60), (WAKING, 30), (CALL, 10)].into_iter().collect(),
            ..interval(1, FUTEX, 1000, 100, None)
        };
        let sleep = Outlier {
            breakdown: [(FUTEX, 50), (WAKING, 30)].into_iter().collect(),
            ..interval(1, FUTEX, 1010, 80, None)
        };
        vec![sleep, call]
    }

    #[test]
    fn a_sleep_within_a_call_counts_once() {
        let kept = call_with_sleep();
        let clips = clips(kept.iter(), ALL.0, ALL.1);
        assert_eq!(sum(&clips), kept[1].breakdown);
        let details: Vec<_> = clips.iter().map(|clip| clip.own_details).collect();
        assert_eq!(details, [true, false]);
    }

    #[test]
    fn a_window_cuts_the_sleep_where_it_was_and_the_rest_of_the_call_evenly() {
        let kept = call_with_sleep();
        // 1050..1090: 10 of the sleep (it ends at 1060), 30 in the run queue, no gap.
        let within = sum(&clips(kept.iter(), 1050, 1090));
        assert_eq!(within.iter().collect::<Vec<_>>(), [(WAKING, 30), (FUTEX, 10)]);
        // 1090..1200: half of the gaps, so half of what is left: 10 asleep, 10 running.
        let within = sum(&clips(kept.iter(), 1090, 1200));
        assert_eq!((within.get(FUTEX), within.get(CALL), within.total()), (5, 5, 10));
        assert_eq!(sum(&clips(kept.iter(), 0, 1000)).total(), 0);
    }

    #[test]
    fn a_call_without_long_sleeps_is_cut_evenly() {
        let kept = call_with_sleep().split_off(1);
        let clips = clips(kept.iter(), 1000, 1050);
        assert_eq!((sum(&clips).get(FUTEX), sum(&clips).total()), (30, 50));
        assert!(clips[0].own_details);
    }

    #[test]
    fn holding_a_lock_is_no_time_of_its_own_and_overlaps_count_once() {
        let mut kept = vec![interval(1, FUTEX, 0, 100, None), interval(1, FUTEX, 50, 100, None)];
        kept.push(Outlier { kind: OutlierKind::LockHold, ..interval(1, FUTEX, 500, 9, None) });
        assert_eq!(sum(&clips(kept.iter(), ALL.0, ALL.1)).total(), 100);
    }
}
