//! Who lets whom go on, of threads that each sleep on a word of their own.
//!
//! A lock goes round: whoever has had it waits for it again later, and each lets any other go on. In a
//! pipeline, or between one thread that gives out work and those that do it, it goes one way, or to and fro
//! between two: nobody is part of a ring of three.

use std::collections::{BTreeMap, BTreeSet};

use model::{Blocked, Context, Run, WaitSum};

/// Of a thread with fewer waits that were kept it is not known who ends them.
const KNOWN: u64 = 5;
/// Who ends fewer of a thread's waits, for each that the one ends which ends most, met it by chance: at the lock
/// inside of a queue.
const BY_CHANCE: u64 = 4;

/// Of those who waited so: the threads that are in no ring of three or more, as far as is known.
pub(super) fn outside_of_rings(run: &Run, waits: &[&WaitSum]) -> BTreeSet<u32> {
    let wakers = wakers(run, waits);
    let mut links = BTreeSet::<(u32, u32)>::new();
    for (waiter, by) in &wakers {
        let most = by.values().max().copied().unwrap_or_default();
        let usual = by.iter().filter(|(_, count)| count.saturating_mul(BY_CHANCE) >= most);
        links.extend(usual.map(|(waker, _)| (*waker, *waiter)));
    }
    let in_rings = prune(links);
    let known = wakers.iter().filter(|(_, by)| by.values().sum::<u64>() >= KNOWN);
    known.map(|(waiter, _)| *waiter).filter(|waiter| !in_rings.contains(waiter)).collect()
}

/// How many of each thread's waits each thread ended, of those kept; where none was kept, of the last ones.
fn wakers(run: &Run, waits: &[&WaitSum]) -> BTreeMap<u32, BTreeMap<u32, u64>> {
    let words: BTreeSet<(u32, u64)> = waits.iter().map(|wait| (wait.tgid, wait.object)).collect();
    let mut wakers = BTreeMap::<u32, BTreeMap<u32, u64>>::new();
    let is_of_them = |o: &&model::Outlier| {
        o.blocked == Some(Blocked::Futex) && words.contains(&(o.tgid, o.object))
    };
    for kept in run.outliers.iter().filter(is_of_them) {
        if let Some(waker) = kept.waker.as_ref().filter(|waker| waker.context == Context::Task) {
            *wakers.entry(kept.tid).or_default().entry(waker.tid).or_default() += 1;
        }
    }
    for wait in waits.iter().filter(|wait| wait.waker_tid != 0) {
        let by = wakers.entry(wait.waiter_tid).or_default();
        if by.is_empty() {
            by.insert(wait.waker_tid, 1);
        }
    }
    wakers
}

/// Whom a thread lets go on, and by whom it is.
#[derive(Default)]
struct Links {
    to: BTreeSet<u32>,
    from: BTreeSet<u32>,
}

impl Links {
    /// It may be part of a ring of three.
    fn may_be_in_ring(&self) -> bool {
        !self.to.is_empty() && !self.from.is_empty() && self.to.union(&self.from).nth(1).is_some()
    }
}

/// Takes away who lets nobody go on or is let go on by nobody, and who is linked to one thread only, to and fro,
/// until there is none of these: in one pass, as a chain may have thousands of threads.
fn prune(links: BTreeSet<(u32, u32)>) -> BTreeSet<u32> {
    let mut threads = BTreeMap::<u32, Links>::new();
    for (waker, waiter) in links.into_iter().filter(|(waker, waiter)| waker != waiter) {
        threads.entry(waker).or_default().to.insert(waiter);
        threads.entry(waiter).or_default().from.insert(waker);
    }
    let mut unsure: Vec<u32> = threads.keys().copied().collect();
    while let Some(tid) = unsure.pop() {
        if threads.get(&tid).is_none_or(Links::may_be_in_ring) {
            continue;
        }
        let gone = threads.remove(&tid).unwrap_or_default();
        for other in gone.to.union(&gone.from) {
            if let Some(links) = threads.get_mut(other) {
                links.to.remove(&tid);
                links.from.remove(&tid);
                unsure.push(*other);
            }
        }
    }
    threads.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pruned(links: &[(u32, u32)]) -> Vec<u32> {
        prune(links.iter().copied().collect()).into_iter().collect()
    }

    #[test]
    fn rings_of_three_stay_and_what_hangs_on_them_goes() {
        assert_eq!(pruned(&[(1, 2), (2, 3), (3, 1)]), [1, 2, 3]);
        assert_eq!(pruned(&[(1, 2), (2, 3), (3, 1), (3, 4), (5, 1), (4, 6)]), [1, 2, 3]);
    }

    #[test]
    fn one_way_and_to_and_fro_are_no_rings() {
        let pipeline = [(1, 2), (1, 3), (2, 4), (3, 4)];
        assert!(pruned(&pipeline).is_empty());
        let with_room = [(1, 2), (2, 1), (2, 3), (3, 2)];
        assert!(pruned(&with_room).is_empty());
        let star = [(9, 1), (9, 2), (9, 3), (1, 9), (2, 9)];
        assert!(pruned(&star).is_empty());
    }
}
