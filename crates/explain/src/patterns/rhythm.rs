//! When repeated events come: their phase in the wall-clock second and in the periods of others.

use std::collections::BTreeSet;

use model::{Rhythm, RhythmKind, Run};
use stats::periodicity::{Fold, fold};

use crate::patterns::recurring::{Life, Recurring, recurring};
use crate::text::{count, duration};

const SECOND: u64 = 1_000_000_000;
/// Periods of the wall clock that are tried.
const WALL_PERIODS: [u64; 3] = [SECOND / 10, SECOND, 10 * SECOND];
/// With fewer events the test says nothing.
const FEWEST: usize = 5;
/// Above this the phases may well be spread evenly.
const ALPHA: f64 = 0.01;

/// Events that follow within a tenth of the period have one cause: the first of them counts.
fn bursts(times: &[u64], period_ns: u64) -> Vec<u64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let mut first = Vec::new();
    let mut last = None;
    for time in sorted {
        if last.is_none_or(|last| time - last > period_ns / 10) {
            first.push(time);
        }
        last = Some(time);
    }
    first
}

/// Folds events over the wall clock, bursts as one; `None` for too few, or for less than two
/// periods.
pub(crate) fn in_wall_clock(run: &Run, times: &[u64], period_ns: u64) -> Option<Fold> {
    // Where the wall clock was at a multiple of the period; it began before all events.
    let (unix_ns, period) = (i128::from(run.header.started_unix_ns), i128::from(period_ns));
    let after = unix_ns.rem_euclid(period) as u64;
    folded(times, i128::from(run.header.started_ns) - i128::from(after), period_ns)
}

/// The phase of events in the wall-clock second, if they gather.
pub(crate) fn of_second(run: &Run, times: &[u64]) -> Option<String> {
    let found = in_wall_clock(run, times, SECOND).filter(|fold| fold.p < ALPHA)?;
    Some(format!(
        "{} after the wall-clock second on average (n = {}, p = {:.1e} that the phases are spread \
         evenly)",
        duration(found.phase as u64),
        count(found.n as u64),
        found.p
    ))
}

/// Recurring events of a run that keep to a period of the wall clock or of other events, or come
/// once in each life of a process. The p of each is multiplied by the number of tests made (Bonferroni).
pub(crate) fn rhythms(run: &Run) -> Vec<Rhythm> {
    let all = recurring(run);
    let periods: Vec<Option<(u64, u64)>> = all.iter().map(own_period).collect();
    let tests = (all.len() * (WALL_PERIODS.len() + periods.iter().flatten().count() + 1)) as f64;
    let mut found = Vec::new();
    for (place, one) in all.iter().enumerate() {
        let times = one.times();
        let of_clock = WALL_PERIODS.iter().filter_map(|period_ns| {
            let fold = in_wall_clock(run, &times, *period_ns)?;
            let kind = RhythmKind::WallClock { period_ns: *period_ns, phase_ns: fold.phase as u64 };
            Some((kind, fold.p, fold.n))
        });
        let best_of_clock = of_clock.min_by(|a, b| a.1.total_cmp(&b.1));
        let of_others =
            all.iter().zip(&periods).enumerate().filter_map(|(other, (them, period))| {
                let (begin, period_ns) = (*period)?;
                let near_wall_clock =
                    WALL_PERIODS.iter().any(|wall| period_ns.abs_diff(*wall) < wall / 50);
                if other == place || near_wall_clock {
                    return None;
                }
                let fold = folded(&times, begin.into(), period_ns)?;
                let (events, phase_ns) = (them.name.clone(), fold.phase as u64);
                Some((RhythmKind::Others { events, period_ns, phase_ns }, fold.p, fold.n))
            });
        let best = of_others.chain(best_of_clock).chain(once(one));
        let best = best.min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((kind, p, n)) = best
            && p * tests < ALPHA
        {
            found.push(Rhythm { events: one.name.clone(), n: n as u64, kind, p: p * tests });
        }
    }
    found.sort_by(|a, b| a.p.total_cmp(&b.p));
    found
}

/// Begin and period of events that are regular: gaps that differ by less than a tenth.
fn own_period(one: &Recurring) -> Option<(u64, u64)> {
    let firsts = bursts(&one.times(), SECOND / 10);
    let begin = *firsts.first()?;
    let mut gaps: Vec<u64> = firsts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let middle = *gaps.get(gaps.len() / 2)?;
    let (low, high) = (gaps.first()?, gaps.last()?);
    (gaps.len() >= 4 && high - low < middle / 10).then_some((begin, middle))
}

/// Folds events over a period that began at `begin`.
fn folded(times: &[u64], begin: i128, period_ns: u64) -> Option<Fold> {
    let firsts = bursts(times, period_ns);
    let (first, last) = (*firsts.first()?, *firsts.last()?);
    if firsts.len() < FEWEST || last - first < 2 * period_ns {
        return None;
    }
    let phase = |time: &u64| (i128::from(*time) - begin).rem_euclid(i128::from(period_ns)) as f64;
    fold(&firsts.iter().map(phase).collect::<Vec<_>>(), period_ns as f64)
}

/// One event in each of several lives of processes. Were each event as likely to come in one life
/// as in another, n events would come in n lives once each with probability n! / n^n.
fn once(one: &Recurring) -> Option<(RhythmKind, f64, usize)> {
    let lives: BTreeSet<Life> = one.events.iter().map(|event| event.life).collect();
    let n = lives.len();
    let p = (1..=n).map(|k| k as f64 / n as f64).product();
    (n >= FEWEST && n == one.events.len()).then_some((RhythmKind::OncePerProcess, p, n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, drops, queue};
    use model::SocketKind;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_phase_is_that_of_the_wall_clock() {
        let mut run = RunBuilder::new().build();
        run.header.started_unix_ns = 1_763_700_000_250_000_000;
        run.header.started_ns = 7 * SECOND;
        // 14 ms after each second of the wall clock, with a burst of two.
        let times: Vec<u64> = (1..8)
            .flat_map(|second| {
                let at = (7 + second) * SECOND - 236 * MS;
                [at, at + 3 * MS]
            })
            .collect();
        let found = in_wall_clock(&run, &times, SECOND).unwrap();
        assert_eq!(found.n, 7);
        assert!((found.phase - 14e6).abs() < 1e3, "{found:?}");
        let said = of_second(&run, &times).unwrap();
        assert!(said.starts_with("14.0 ms after") && said.contains("n = 7"), "{said}");
    }

    #[test]
    fn events_at_any_time_have_no_phase() {
        let run = RunBuilder::new().build();
        let times: Vec<u64> = (0..10).map(|n| n * 1_300 * MS).collect();
        assert_eq!(of_second(&run, &times), None);
        assert!(in_wall_clock(&run, &times[..2], SECOND).is_none());
    }

    #[test]
    fn drops_of_each_second_are_found_among_calls_at_any_time() {
        let mut run = RunBuilder::new().thread(10, 10, &[]).length(20 * SECOND);
        for n in 1..15 {
            run = run
                .dropped(drops("SOCKET_RCVBUFF", n * SECOND + 14 * MS + n % 3 * MS, 2 * MS))
                .outlier_at(n * 1_307 * MS + n * n * 11 * MS);
        }
        let found = rhythms(&run.build());
        assert_eq!(found.len(), 1, "{found:?}");
        let RhythmKind::WallClock { period_ns: SECOND, phase_ns } = found[0].kind else {
            panic!("{found:?}")
        };
        assert!((14 * MS..17 * MS + MS).contains(&phase_ns) && found[0].n == 14, "{found:?}");
        assert!(found[0].p < 1e-3);
    }

    #[test]
    fn sends_without_room_are_events_too() {
        let mut run = RunBuilder::new().thread(10, 10, &[]).length(20 * SECOND);
        for n in 1..15 {
            let mut second = queue(SocketKind::Udp, 0, 0, 0);
            second.blocked_sends.bursts_ns = vec![n * SECOND + 14 * MS + n % 3 * MS];
            run = run.queue(second);
        }
        let found = rhythms(&run.build());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].events, "sends without room on udp 127.0.0.1:9000 (fd 3)");
        assert!(matches!(found[0].kind, RhythmKind::WallClock { period_ns: SECOND, .. }));
    }

    #[test]
    fn once_in_each_of_many_processes_is_seen_as_such() {
        let mut run = RunBuilder::new().length(60 * SECOND);
        for n in 0..12 {
            let mut socket = drops("SOCKET_RCVBUFF", n * n * 371 * MS, MS);
            socket.socket.tgid = 100 + n as u32;
            run = run.dropped(socket);
        }
        let found = rhythms(&run.build());
        assert!(found.iter().any(|one| one.kind == RhythmKind::OncePerProcess), "{found:?}");
    }
}
