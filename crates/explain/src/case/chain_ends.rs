//! Waits by what was at the end of the chain: what the one did that was waited for, or the one that
//! that one waited for.
//!
//! The kernel side divides each wait when it ends (bpf/chains.h), the short ones, too; these are the
//! sums of it. Older runs do not have them.

use std::collections::BTreeMap;

use model::{ChainEnd, Run, WaitSum, chain_end, part_of};

use crate::text::duration;

/// True of what a wait for a lock, an answer or a barrier is lost to whoever was at the end. A CPU, a
/// throttle and a stop have causes of their own, which claim what waits behind them.
pub fn is_holders(end: ChainEnd) -> bool {
    !matches!(end, ChainEnd::RunQueue | ChainEnd::Throttled | ChainEnd::Stopped)
}

/// Who was usually at the end, and of how much time; in older runs that of the longest wait.
fn usual_end(wait: &WaitSum) -> Option<((u32, ChainEnd), u64)> {
    let usual = wait.usual_end.map(|end| (end, wait.usual_ns()));
    usual.or_else(|| wait.longest_end.map(|end| (end, wait.max_ns)))
}

/// Nanoseconds of some waits by what was at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainEnds {
    ns: BTreeMap<ChainEnd, u64>,
    longest_ns: u64,
    /// Of the longest wait: the thread at the end, and what it did.
    longest_end: Option<(u32, ChainEnd)>,
    /// The same of most waits of each sum, and how long these were at most.
    usual: BTreeMap<(u32, ChainEnd), u64>,
}

impl ChainEnds {
    /// Adds those of a sum.
    pub fn add(&mut self, wait: &WaitSum) {
        if wait.longest_end.is_some() && wait.max_ns >= self.longest_ns {
            self.longest_ns = wait.max_ns;
            self.longest_end = wait.longest_end;
        }
        if let Some((end, ns)) = usual_end(wait) {
            let sum = self.usual.entry(end).or_default();
            *sum = sum.saturating_add(ns);
        }
        for (end, ns) in &wait.ends {
            let sum = self.ns.entry(*end).or_default();
            *sum = sum.saturating_add(*ns);
        }
    }

    /// All of it; 0 if it was not recorded.
    pub fn total(&self) -> u64 {
        self.sum_of(|_| true)
    }

    /// Nanoseconds by end.
    pub fn by_end(&self) -> impl Iterator<Item = (ChainEnd, u64)> {
        self.ns.iter().map(|(end, ns)| (*end, *ns))
    }

    /// The part with one of these ends.
    pub fn sum_of(&self, which: impl Fn(ChainEnd) -> bool) -> u64 {
        let ends = self.ns.iter().filter(|(end, _)| which(**end));
        ends.fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }

    /// The part at whose end nobody saw what was done.
    pub fn unknown(&self) -> u64 {
        self.sum_of(|end| matches!(end, ChainEnd::Unknown | ChainEnd::Unwatched))
    }

    /// Of `ns` waited, the part with one of these ends.
    pub fn part_of(&self, ns: u64, which: impl Fn(ChainEnd) -> bool) -> u64 {
        part_of(ns, self.sum_of(which), self.total())
    }

    /// The end with the most time, if it was recorded.
    pub fn main(&self) -> Option<ChainEnd> {
        let largest = self.ns.iter().filter(|(_, ns)| **ns > 0).max_by_key(|(_, ns)| **ns);
        largest.map(|(end, _)| *end)
    }

    /// Whether it is known of some waits with this end who was there.
    pub fn is_known_at(&self, end: ChainEnd) -> bool {
        self.usual.keys().any(|(_, other)| *other == end)
    }

    /// The name of those who were at this end of most waits.
    pub fn who_was_at(&self, end: ChainEnd, run: &Run) -> Option<String> {
        let mut names = BTreeMap::<&str, u64>::new();
        let mut all = 0u64;
        for ((tid, _), ns) in self.usual.iter().filter(|((_, other), _)| *other == end) {
            all = all.saturating_add(*ns);
            if let Some(thread) = run.threads.iter().find(|thread| thread.tid == *tid) {
                *names.entry(&thread.comm).or_default() += ns;
            }
        }
        let (name, ns) = names.into_iter().max_by_key(|(_, ns)| *ns)?;
        (ns > all / 2).then(|| name.to_owned())
    }

    /// The thread that was at this end the longest, of those that `which` accepts, if these were there in
    /// most waits.
    pub fn mostly_at(&self, end: ChainEnd, which: impl Fn(u32) -> bool) -> Option<u32> {
        let at = || self.usual.iter().filter(|((_, other), _)| *other == end);
        let all = at().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
        let of_which = || at().filter(|((tid, _), _)| which(*tid));
        let ns = of_which().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
        let longest = of_which().max_by_key(|(_, ns)| **ns)?;
        (ns > all / 2).then_some(longest.0.0)
    }

    /// Of a wait for a lock that nobody ended: the thread that the lock names as its owner.
    pub fn owner(&self) -> Option<u32> {
        self.longest_end.filter(|(_, end)| *end == ChainEnd::Unknown).map(|(tid, _)| tid)
    }

    /// `the longest wait, 12.9 ms, was for logger (tid 77), which slept by a timer of its own`; `None`
    /// if it is not known.
    pub fn longest_in_words(&self, run: &Run) -> Option<String> {
        let (tid, end) = self.longest_end.filter(|(_, end)| *end != ChainEnd::Unknown)?;
        let comm = run.threads.iter().find(|thread| thread.tid == tid).map(|t| t.comm.as_str());
        let who = comm.map_or(format!("tid {tid}"), |comm| format!("{comm} (tid {tid})"));
        Some(format!(
            "the longest wait, {}, was in the end for {who}, which {end}",
            duration(self.longest_ns)
        ))
    }

    /// `it ran on a CPU for 81 % (2.30 s), ...`; `None` if it was not recorded.
    pub fn in_words(&self, it: &str) -> Option<String> {
        let words = chain_end::in_words(&self.ns);
        (!words.is_empty()).then(|| format!("{it} {words}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, wait};

    fn ends(of: &[(ChainEnd, u64)]) -> ChainEnds {
        let mut ends = ChainEnds::default();
        ends.add(&WaitSum {
            ends: of.iter().copied().collect(),
            ..wait(1, FUTEX, 0x10, 1, of.iter().map(|(_, ns)| ns).sum())
        });
        ends
    }

    #[test]
    fn who_was_at_the_end_is_named_if_it_was_so_in_most_waits() {
        let builder = RunBuilder::new().thread(10, 10, &[]).thread(20, 20, &[]);
        let mut run = builder.thread(21, 21, &[]).build();
        for (thread, name) in run.threads.iter_mut().zip(["wc", "gzip", "gzip"]) {
            thread.comm = name.to_owned();
        }
        let longest = |tid, end, ns| WaitSum {
            ends: [(end, ns)].into(),
            longest_end: Some((10, ChainEnd::Disk)),
            usual_end: Some((tid, end)),
            ..wait(1, FUTEX, u64::from(tid), 1, ns)
        };
        let mut ends = ChainEnds::default();
        ends.add(&longest(20, ChainEnd::Cpu, 200));
        ends.add(&longest(21, ChainEnd::Cpu, 200));
        ends.add(&longest(10, ChainEnd::Cpu, 300));
        ends.add(&longest(10, ChainEnd::Timer, 900));
        assert_eq!(ends.who_was_at(ChainEnd::Cpu, &run).as_deref(), Some("gzip"));
        ends.add(&longest(10, ChainEnd::Cpu, 100));
        assert_eq!(ends.who_was_at(ChainEnd::Cpu, &run), None, "half is not most");
        assert_eq!(ends.who_was_at(ChainEnd::Disk, &run), None);
    }

    #[test]
    fn a_part_of_other_waiting_is_divided_alike() {
        let ends = ends(&[(ChainEnd::Disk, 300), (ChainEnd::Unknown, 100)]);
        assert_eq!(ends.part_of(1000, |end| end == ChainEnd::Disk), 750);
        assert_eq!(ChainEnds::default().part_of(1000, |_| true), 0);
        assert_eq!(ChainEnds::default().in_words("it"), None);
        assert!(ends.in_words("it").unwrap().starts_with("it waited for a disk for 75"));
        assert_eq!(ends.main(), Some(ChainEnd::Disk));
    }
}
