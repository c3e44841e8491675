//! Do rare events of one thing fall into the times of another more often than by chance?
//!
//! "At any time" would be the wrong null model: both may have a rhythm, and two rhythms of the same
//! period either always meet or never do. So the events stay where they are, and the times are moved
//! in two ways that keep their rhythm:
//! - shifted: all of them together, around the length of the run (a circular shift). Two strict
//!   rhythms of the same period, or two that both gather in one part of the run, meet in many shifts;
//! - shuffled: the times, and the gaps between them, in another order, and then shifted. Only their
//!   lengths are kept. A shift alone cannot say how unlikely it is to meet at uneven distances,
//!   because there is only one shift where all meet.
//!
//! The larger p of the two counts. The test statistic is the time that both have in common. It
//! distinguishes an exact meeting from one that a shift by the length of an event would still give.

/// A range of time: from, and up to. Unit and zero are the caller's.
pub type Span = (u64, u64);

/// Events against times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coincidence {
    /// Events.
    pub n: usize,
    /// Those that touch one of the times.
    pub seen: usize,
    /// How many would touch one, on average over all shifts.
    pub expected: f64,
    /// How often they have as much time in common by chance: p if this is the only test made.
    pub p_shifted: f64,
    /// The same with times and gaps in another order.
    pub p_reordered: f64,
}

const SEED: u64 = 0x636f_696e;
/// Draws of chance that are as good: after so many the test stops.
const ENOUGH: usize = 50;

/// Tests `events` against `times`, both sorted, without overlaps, within 0 to `length`. Chance is
/// tried `draws` times at most, so p is at least 1 / (`draws` + 1). `None` without events or times,
/// or if the times are all there is.
pub fn test(events: &[Span], times: &[Span], length: u64, draws: usize) -> Option<Coincidence> {
    let busy: u64 = times.iter().map(|(from, to)| to - from).sum();
    if events.is_empty() || times.is_empty() || busy >= length {
        return None;
    }
    let (seen, in_common) = (hits(events, times), common(events, times));
    let gaps = gaps(times, length);
    let missed = |event: &Span| -> f64 {
        // Where an event could begin without touching any of the times.
        let free: u64 = gaps.iter().map(|gap| gap.saturating_sub(event.1 - event.0)).sum();
        free as f64 / length as f64
    };
    let expected: f64 = events.iter().map(|event| 1.0 - missed(event)).sum();
    if seen as f64 <= expected {
        // No more than by chance: there is nothing to try.
        return Some(Coincidence {
            n: events.len(),
            seen,
            expected,
            p_shifted: 1.0,
            p_reordered: 1.0,
        });
    }
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut lengths: Vec<u64> = times.iter().map(|(from, to)| to - from).collect();
    let p_shifted = chance(draws, in_common, || {
        let moved = shifted(times, rng.u64(..length), length);
        common(events, &moved)
    });
    let mut gaps = gaps;
    let p_reordered = chance(draws, in_common, || {
        rng.shuffle(&mut lengths);
        rng.shuffle(&mut gaps);
        let moved = shifted(&laid_out(&lengths, &gaps), rng.u64(..length), length);
        common(events, &moved)
    });
    Some(Coincidence { n: events.len(), seen, expected, p_shifted, p_reordered })
}

/// How often chance gives `seen` or more (Besag and Clifford 1991: it may stop early, where p is
/// large).
fn chance(draws: usize, seen: u64, mut draw: impl FnMut() -> u64) -> f64 {
    let mut as_good = 0;
    for drawn in 1..=draws {
        as_good += usize::from(draw() >= seen);
        if as_good == ENOUGH {
            return ENOUGH as f64 / drawn as f64;
        }
    }
    (as_good + 1) as f64 / (draws + 1) as f64
}

/// Events that touch a time. Both are sorted.
fn hits(events: &[Span], times: &[Span]) -> usize {
    let mut next = 0;
    let mut touches = |event: &&Span| {
        while times.get(next).is_some_and(|time| time.1 <= event.0) {
            next += 1;
        }
        times.get(next).is_some_and(|time| time.0 < event.1.max(event.0 + 1))
    };
    events.iter().filter(&mut touches).count()
}

/// Time that is in both; at least a unit for each event that touches. Both are sorted.
fn common(events: &[Span], times: &[Span]) -> u64 {
    let (mut next, mut sum) = (0, 0);
    for event in events {
        let to = event.1.max(event.0 + 1);
        while times.get(next).is_some_and(|time| time.1 <= event.0) {
            next += 1;
        }
        let touched = times.iter().skip(next).take_while(|time| time.0 < to);
        sum += touched.map(|time| time.1.min(to) - time.0.max(event.0)).sum::<u64>();
    }
    sum
}

/// Gap after each time, around the end.
fn gaps(times: &[Span], length: u64) -> Vec<u64> {
    let first = times.first().map_or(0, |time| time.0);
    let after = times.iter().skip(1).map(|time| time.0).chain([length + first]);
    times.iter().zip(after).map(|(time, next)| next.saturating_sub(time.1)).collect()
}

fn laid_out(lengths: &[u64], gaps: &[u64]) -> Vec<Span> {
    let mut at = 0;
    let lay = |(length, gap): (&u64, &u64)| {
        let span = (at, at + length);
        at += length + gap;
        span
    };
    lengths.iter().zip(gaps).map(lay).collect()
}

/// All of them later by `by`; what passes the end goes on at the beginning.
fn shifted(times: &[Span], by: u64, length: u64) -> Vec<Span> {
    let later = |time: &Span| (time.0 + by, time.1 + by);
    let mut moved = Vec::with_capacity(times.len() + 1);
    let beyond = times.partition_point(|time| time.1 + by <= length);
    for time in times.iter().skip(beyond).map(later) {
        if time.0 < length {
            moved.push((0, time.1 - length));
        } else {
            moved.push((time.0 - length, time.1 - length));
        }
    }
    moved.extend(times.iter().take(beyond).map(later));
    moved.extend(times.get(beyond).map(later).filter(|t| t.0 < length).map(|t| (t.0, length)));
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000;
    const DRAWS: usize = 4_000;

    /// `n` times of 50 at uneven distances.
    fn uneven(rng: &mut fastrand::Rng, n: u64) -> Vec<Span> {
        let mut at = 0;
        let next = |_| {
            at += 300 + rng.u64(..1_400);
            (at, at + 50)
        };
        (0..n).map(next).collect()
    }

    #[test]
    fn what_is_expected_is_known_for_one_time_and_one_event() {
        // 100 of 1,000 and an event of 50: touched from 50 before to the end of it.
        let found = test(&[(500, 550)], &[(520, 620)], S, DRAWS).unwrap();
        assert_eq!((found.n, found.seen), (1, 1));
        assert!((found.expected - 0.15).abs() < 1e-9, "{found:?}");
        assert!((found.p_shifted - 0.15).abs() < 0.07, "{found:?}");
        assert_eq!(test(&[(500, 550)], &[(560, 620)], S, DRAWS).unwrap().seen, 0);
        assert!(test(&[], &[(0, 1)], S, DRAWS).is_none() && test(&[(0, 1)], &[], S, 9).is_none());
    }

    #[test]
    fn a_shift_keeps_the_lengths_and_goes_around() {
        let times = [(0, 10), (40, 60), (90, 95)];
        for by in 0..100 {
            let moved = shifted(&times, by, 100);
            assert_eq!(moved.iter().map(|(from, to)| to - from).sum::<u64>(), 35, "{by}");
            assert!(moved.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{by}: {moved:?}");
            assert!(moved.iter().all(|(from, to)| from < to && *to <= 100), "{by}: {moved:?}");
        }
        assert_eq!(gaps(&times, 100), [30, 30, 5]);
    }

    #[test]
    fn events_within_uneven_times_are_no_chance() {
        let times = uneven(&mut fastrand::Rng::with_seed(1), 14);
        let events: Vec<Span> = times.iter().map(|(from, _)| (from + 20, from + 25)).collect();
        let found = test(&events, &times, 20 * S, DRAWS).unwrap();
        assert_eq!((found.n, found.seen), (14, 14));
        assert!(found.expected < 1.0, "{found:?}");
        assert!(found.p_shifted < 0.01 && found.p_reordered < 1e-3, "{found:?}");
    }

    #[test]
    fn two_strict_rhythms_of_one_period_prove_nothing() {
        // Every time is met, and yet one shift in twenty would meet them as well.
        let times: Vec<Span> = (0..20).map(|n| (n * S, n * S + 50)).collect();
        let events: Vec<Span> = times.iter().map(|(from, _)| (from + 10, from + 12)).collect();
        let found = test(&events, &times, 20 * S, DRAWS).unwrap();
        assert_eq!(found.seen, 20);
        assert!(found.p_shifted > 0.03 && found.p_reordered > 0.03, "{found:?}");
    }

    #[test]
    fn two_that_gather_in_the_same_parts_of_a_run_prove_little() {
        let mut rng = fastrand::Rng::with_seed(5);
        let parts = [0, 5 * S];
        let mut times = Vec::new();
        let mut events = Vec::new();
        for part in parts {
            let mut at = part;
            while at < part + S {
                let to = at + 20 + rng.u64(..20);
                times.push((at, to));
                at = to + 20 + rng.u64(..20);
            }
            events.extend((0..20).map(|_| part + rng.u64(..S)).map(|at| (at, at + 5)));
        }
        events.sort_unstable();
        let found = test(&events, &times, 10 * S, DRAWS).unwrap();
        assert!(found.seen as f64 > 2.0 * found.expected, "{found:?}");
        assert!(found.p_shifted > 0.05 && found.p_reordered < found.p_shifted, "{found:?}");
    }

    #[test]
    fn false_alarms_are_no_more_than_promised() {
        let mut alarms = 0;
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let times = uneven(&mut rng, 15);
            let mut events: Vec<Span> =
                (0..12).map(|_| rng.u64(..19 * S)).map(|t| (t, t + 30)).collect();
            events.sort_unstable();
            let found = test(&events, &times, 20 * S, 400).unwrap();
            alarms += usize::from(found.p_shifted.max(found.p_reordered) <= 0.05);
        }
        assert!(alarms <= 27, "{alarms} of 300 at 5 %");
    }
}
