//! How many calls to a peer were on their way at a time, of those that the recorder saw whole.

use std::collections::BTreeMap;

use model::Call;

/// More at a time are counted as so many.
const MOST: usize = 64;

/// A call is known when its answer has been read. So long is waited for those that began before: of one
/// that takes longer the beginning is left out.
const LATEST_NS: u64 = 2_000_000_000;

/// For how long so many calls to each peer were on their way.
#[derive(Default)]
pub(crate) struct CallsAtOnce {
    /// By number of the peer's program.
    peers: BTreeMap<u32, Peer>,
}

#[derive(Default)]
struct Peer {
    /// Calls of which not all has been counted: from when to when.
    calls: Vec<(u64, u64)>,
    counted_to_ns: u64,
    /// Nanoseconds with one call, two, ...
    at_once: Vec<u64>,
}

impl CallsAtOnce {
    /// Adds calls that have ended.
    pub fn add(&mut self, calls: &[Call]) {
        for call in calls.iter().filter(|call| call.sent_ns < call.arrived_ns) {
            let peer = self.peers.entry(call.program).or_default();
            peer.calls.push((call.sent_ns, call.arrived_ns));
        }
    }

    /// Counts what is known at this moment; all of it when recording has ended.
    pub fn count(&mut self, now_ns: u64, ends: bool) {
        let to_ns = if ends { u64::MAX } else { now_ns.saturating_sub(LATEST_NS) };
        self.peers.values_mut().for_each(|peer| peer.count_to(to_ns));
    }

    /// Nanoseconds with one call to this peer, two, ...
    pub fn of(&self, program: u32) -> &[u64] {
        self.peers.get(&program).map_or(&[], |peer| &peer.at_once)
    }
}

impl Peer {
    fn count_to(&mut self, to_ns: u64) {
        let within = |(from, to): (u64, u64)| (from.max(self.counted_to_ns), to.min(to_ns));
        let known = self.calls.iter().copied().map(within).filter(|(from, to)| from < to);
        let mut changes: Vec<(u64, isize)> = known.flat_map(|(f, t)| [(f, 1), (t, -1)]).collect();
        changes.sort_unstable();
        let (mut since, mut number) = (0, 0isize);
        for (at, change) in changes {
            if let Some(last) = usize::try_from(number - 1).ok().map(|n| n.min(MOST - 1)) {
                self.at_once.resize(self.at_once.len().max(last + 1), 0);
                self.at_once[last] = self.at_once[last].saturating_add(at - since);
            }
            (since, number) = (at, number + change);
        }
        self.calls.retain(|(_, to)| *to > to_ns);
        self.counted_to_ns = self.counted_to_ns.max(to_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(program: u32, sent_ns: u64, arrived_ns: u64) -> Call {
        Call {
            program,
            tgid: 1,
            tid: 1,
            link: 1,
            cause: 0,
            sent_ns,
            arrived_ns,
            read_ns: arrived_ns,
            answer: None,
        }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn times_are_counted_by_the_number_of_calls_at_once() {
        let mut calls = CallsAtOnce::default();
        calls.add(&[call(7, 0, 10), call(7, 5, 20), call(7, 6, 8), call(8, 0, 3)]);
        calls.count(0, true);
        assert_eq!(calls.of(7), [5 + 10, 1 + 2, 2]);
        assert_eq!(calls.of(8), [3]);
        assert!(calls.of(9).is_empty());
    }

    #[test]
    fn calls_that_are_known_later_are_counted_with_those_of_their_time() {
        let mut calls = CallsAtOnce::default();
        calls.add(&[call(7, 0, SECOND)]);
        calls.count(SECOND, false);
        assert!(calls.of(7).is_empty());
        calls.add(&[call(7, 0, SECOND * 5 / 2), call(7, SECOND / 2, 4 * SECOND)]);
        calls.count(4 * SECOND, false);
        assert_eq!(calls.of(7), [0, 3 * SECOND / 2, SECOND / 2], "of the first two seconds");
        // Of one that took longer than is waited the beginning is not known to be beside the others.
        calls.add(&[call(7, SECOND, 3 * SECOND)]);
        calls.count(4 * SECOND, true);
        assert_eq!(calls.of(7), [SECOND, 2 * SECOND, SECOND]);
    }

    #[test]
    fn very_many_are_counted_as_the_most() {
        let mut calls = CallsAtOnce::default();
        let many: Vec<Call> = (0..100).map(|_| call(7, 0, 10)).collect();
        calls.add(&many);
        calls.count(0, true);
        assert_eq!((calls.of(7).len(), calls.of(7)[MOST - 1]), (MOST, 10));
    }
}
