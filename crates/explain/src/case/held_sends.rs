//! Sends that their own thread held back: it did nothing but wait (sched_yield, nanosleep) and
//! then sent, as a limit of the sending rate makes it do.

use model::{Account, Blocked, Event, EventDetail, EventKind, Metric, Run, Syscall};

/// Calls that send.
const SENDS: [&str; 3] = ["sendto", "sendmsg", "sendmmsg"];
/// If more than 1 of so many sends is held back, the program keeps a pace: no limit is reached now
/// and then.
const PACED: u64 = 5;
/// Ends further apart than this are not of one burst.
const BURST_NS: u64 = 100_000_000;
/// Fewer gaps than this show no pace.
const PACE_GAPS: usize = 8;

/// Sends of a process, and how many of them were held back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sends {
    /// All.
    pub count: u64,
    /// Held back, for any time.
    pub held: u64,
    /// The time of these.
    pub held_ns: u64,
    /// Seconds of the run in which some were.
    pub seconds: u64,
}

impl Sends {
    /// Of one process over a whole run; held back those that waited with `call`.
    pub(crate) fn of(run: &Run, tgid: u32, call: Syscall) -> Self {
        let sends = SENDS.map(|name| Syscall::named(name).map(Metric::Syscall));
        let mut found = Sends::default();
        for second in run.seconds.iter().filter(|second| second.tgid == tgid) {
            let histogram = &second.histogram;
            if second.metric == Metric::HeldSend(call) {
                found.held = found.held.saturating_add(histogram.count());
                found.held_ns = found.held_ns.saturating_add(histogram.sum());
                found.seconds += u64::from(histogram.count() > 0);
            } else if sends.iter().flatten().any(|send| *send == second.metric) {
                found.count = found.count.saturating_add(histogram.count());
            }
        }
        found
    }

    /// Some are held back, most are not.
    pub(crate) fn reach_a_limit(&self) -> bool {
        self.held > 0 && self.held <= self.count / PACED
    }
}

/// Those of a run that were long enough to be kept whole.
pub(crate) fn kept(run: &Run) -> impl Iterator<Item = &Event> {
    run.events.iter().filter(|event| event.kind == EventKind::HeldSend)
}

/// What it waited with.
pub(crate) fn waited_in(event: &Event) -> Option<Syscall> {
    match event.detail {
        EventDetail::Waits { call, .. } => Some(call),
        _ => None,
    }
}

/// The account of the calls that it waited with.
pub(crate) fn account(event: &Event) -> Option<Account> {
    let call = waited_in(event)?;
    let yields = Some(call) == Syscall::named("sched_yield");
    Some(if yields { Account::Syscall(call) } else { Account::Blocked(Blocked::TimerSleep) })
}

/// The interval of a limit: what mostly lies between the ends of held sends of one burst, where
/// nine in ten of these gaps are a multiple of it. `None` for fewer than three gaps, or otherwise.
pub(crate) fn interval_ns(events: &[&Event]) -> Option<u64> {
    let mut ends: Vec<u64> = events.iter().map(|e| e.end_ns()).collect();
    ends.sort_unstable();
    let gaps: Vec<u64> =
        ends.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap < BURST_NS).collect();
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    let interval = *sorted.get(gaps.len() / 2).filter(|gap| **gap > 0)?;
    let off = |gap: &u64| (gap % interval).min(interval - gap % interval);
    let on = gaps.iter().filter(|gap| off(gap) < interval / 10).count();
    (gaps.len() >= 3 && on * 10 >= gaps.len() * 9).then_some(interval)
}

/// Why these sends were held back by nothing but their own thread, if so: one sleep of always the
/// same length before each, as a program makes that is slow on purpose; or at the same distance for
/// most of the `recorded_ns` in which they were seen, as one that keeps a pace. (A burst does so while
/// it lasts.)
pub(crate) fn deliberate(events: &[&Event], recorded_ns: u64) -> Option<&'static str> {
    let once = |event: &&&Event| matches!(event.detail, EventDetail::Waits { times: 1, .. });
    let asleep = Account::Blocked(Blocked::TimerSleep);
    let sleeps: Vec<u64> = events
        .iter()
        .filter(once)
        .filter(|event| account(event) == Some(asleep))
        .map(|event| event.value)
        .collect();
    if like_median(&sleeps).len() * 10 >= events.len() * 9 && !events.is_empty() {
        return Some("each after one sleep of the same length, which no limit has set");
    }
    let mut ends: Vec<u64> = events.iter().map(|event| event.end_ns()).collect();
    ends.sort_unstable();
    let gaps: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let even: u64 = like_median(&gaps).iter().sum();
    (gaps.len() >= PACE_GAPS && even > recorded_ns / 4 * 3)
        .then_some("at the same distance for most of the run: a pace that is kept")
}

/// Those that differ from the median by a fifth at most.
fn like_median(values: &[u64]) -> Vec<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    sorted.retain(|value| value.abs_diff(median) <= median / 5);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::held_send;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_sleep_in_a_handler_and_a_pace_are_deliberate_and_a_burst_that_meets_a_limit_is_not() {
        let sleep = |begin: u64, ns: u64| {
            let call = Syscall::named("clock_nanosleep").unwrap();
            let detail = EventDetail::Waits { call, times: 1 };
            Event { detail, ..held_send(10, begin, ns) }
        };
        let why = |events: Vec<Event>| deliberate(&events.iter().collect::<Vec<_>>(), 450 * MS);
        let handler = (0..20).map(|n: u64| sleep(n * n * 31 * MS, 20 * MS + n * 10_000));
        assert!(why(handler.collect()).unwrap().contains("one sleep"));
        let pace = (0..20).map(|n: u64| held_send(10, n * 20 * MS, 15 * MS));
        assert!(why(pace.collect()).unwrap().contains("a pace"));
        let one_burst = (0..20).map(|n: u64| held_send(10, n * 5 * MS, 4 * MS));
        assert_eq!(why(one_burst.collect()), None);
        // Up to the next interval of a limit, for a part of each second.
        let burst =
            (0..20).map(|n: u64| held_send(10, n / 10 * 1000 * MS + n % 10 * 5 * MS, 2 * MS));
        assert_eq!(why(burst.collect()), None);
        let rest =
            (0..20).map(|n: u64| sleep(n / 10 * 1000 * MS + n % 10 * 5 * MS, n % 4 * MS + MS));
        assert_eq!(why(rest.collect()), None);
    }

    #[test]
    fn the_interval_of_a_limit_is_what_lies_between_the_ends() {
        let at = |begin: u64, end: u64| held_send(10, begin, end - begin);
        let events = [at(1_300_000, 2 * MS), at(2_400_000, 4 * MS), at(4_100_000, 6 * MS)];
        let more = [at(1_001 * MS, 1_004 * MS), at(1_004 * MS, 1_006 * MS + 3_000)];
        let all: Vec<&Event> = events.iter().chain(&more).collect();
        let interval = interval_ns(&all).unwrap();
        assert!((2 * MS..2 * MS + 4_000).contains(&interval), "{interval}");
        let few: Vec<&Event> = events.iter().take(2).collect();
        assert_eq!(interval_ns(&few), None);
        let odd = [at(0, 2 * MS), at(0, 5 * MS), at(0, 9 * MS), at(0, 11 * MS)];
        assert_eq!(interval_ns(&odd.iter().collect::<Vec<_>>()), None);
    }
}
