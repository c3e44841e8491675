//! When repeated events come: their phase in the wall-clock second and in the periods of others.

use model::Run;
use stats::periodicity::{Fold, fold};

use crate::text::{count, duration};

const SECOND: u64 = 1_000_000_000;
/// With fewer events a phase is no news.
const FEWEST: usize = 3;
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
    let firsts = bursts(times, period_ns);
    let (begin, end) = (*firsts.first()?, *firsts.last()?);
    if firsts.len() < FEWEST || end - begin < 2 * period_ns {
        return None;
    }
    // Whole numbers: a float has no room for the nanoseconds since 1970.
    let offset = i128::from(run.header.started_unix_ns) - i128::from(run.header.started_ns);
    let phase = |time: &u64| (i128::from(*time) + offset).rem_euclid(i128::from(period_ns)) as f64;
    fold(&firsts.iter().map(phase).collect::<Vec<_>>(), period_ns as f64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;

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
}
