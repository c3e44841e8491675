//! Do rare events have a rhythm? Their phases in a period, and Rayleigh's test, before any
//! spectrum: a handful of events has none.

use std::f64::consts::TAU;

/// Events folded over a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fold {
    /// Length of the period.
    pub period: f64,
    /// Mean phase, from 0 to the period.
    pub phase: f64,
    /// Mean resultant length: 0 if phases are spread evenly, 1 if all are the same.
    pub concentration: f64,
    /// Events.
    pub n: usize,
    /// p of Rayleigh's test that the phases are spread evenly.
    pub p: f64,
}

/// Folds event times over a period; `None` without events or period.
pub fn fold(times: &[f64], period: f64) -> Option<Fold> {
    if times.is_empty() || period <= 0.0 {
        return None;
    }
    let n = times.len() as f64;
    let (sin, cos) = times
        .iter()
        .map(|time| time.rem_euclid(period) / period * TAU)
        .fold((0.0, 0.0), |(sin, cos), angle| (sin + angle.sin(), cos + angle.cos()));
    let concentration = sin.hypot(cos) / n;
    let phase = (sin.atan2(cos) / TAU).rem_euclid(1.0) * period;
    Some(Fold { period, phase, concentration, n: times.len(), p: rayleigh_p(concentration, n) })
}

/// p of Rayleigh's test (Zar 1999, equation 27.4), good to a few per cent from n = 5 on.
fn rayleigh_p(concentration: f64, n: f64) -> f64 {
    let length = concentration * n;
    let root = (1.0 + 4.0 * n + 4.0 * (n * n - length * length)).max(0.0).sqrt();
    (root - (1.0 + 2.0 * n)).exp().clamp(f64::MIN_POSITIVE, 1.0)
}

/// The rhythm among `periods` in which events gather most surely, with p times the number of periods
/// tried (Bonferroni); `None` if at most `alpha` is not reached, or for fewer than 5 events.
///
/// `clock` are the times at which events can happen at all. A period in which these gather, too,
/// says nothing and is left out: timers of one second are late at one phase of the second.
pub fn beat(times: &[f64], clock: &[f64], periods: &[f64], alpha: f64) -> Option<Fold> {
    const FEWEST: usize = 5;
    const EVENLY: f64 = 0.2;
    if times.len() < FEWEST {
        return None;
    }
    let span = times.iter().fold(f64::MIN, |a, b| a.max(*b))
        - times.iter().fold(f64::MAX, |a, b| a.min(*b));
    let tried: Vec<Fold> = periods
        .iter()
        // Twice the period, at least, or events that are merely close have a common phase.
        .filter(|period| span >= 2.0 * **period)
        .filter(|period| fold(clock, **period).is_some_and(|all| all.concentration < EVENLY))
        .filter_map(|period| fold(times, *period))
        .collect();
    let corrected = |fold: &Fold| (fold.p * tried.len() as f64).min(1.0);
    let best = tried.iter().min_by(|a, b| {
        // Multiples of a period fit no worse than it: the longest concentration wins ties.
        a.p.total_cmp(&b.p).then(b.concentration.total_cmp(&a.concentration))
    })?;
    let p = corrected(best);
    (p <= alpha).then_some(Fold { p, ..*best })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    const S: f64 = 1e9;
    const PERIODS: [f64; 4] = [10.0 * MS, 100.0 * MS, S, 10.0 * S];

    fn clock() -> Vec<f64> {
        (0..30_000).map(|n| f64::from(n) * 1.003 * MS).collect()
    }

    #[test]
    fn one_event_a_second_is_found_with_its_phase() {
        let mut rng = fastrand::Rng::with_seed(1);
        let times: Vec<f64> =
            (0..20).map(|n| f64::from(n) * S + 14.0 * MS + rng.f64() * 6.0 * MS).collect();
        let found = beat(&times, &clock(), &PERIODS, 0.01).unwrap();
        assert_eq!((found.period, found.n), (S, 20));
        assert!((found.phase / MS - 17.0).abs() < 2.0, "{found:?}");
    }

    #[test]
    fn false_alarms_are_no_more_than_promised() {
        let mut rng = fastrand::Rng::with_seed(2);
        let (clock, mut alarms) = (clock(), 0);
        for _ in 0..400 {
            let times: Vec<f64> = (0..12).map(|_| rng.f64() * 30.0 * S).collect();
            alarms += usize::from(beat(&times, &clock, &PERIODS, 0.05).is_some());
        }
        assert!((3..=32).contains(&alarms), "{alarms} of 400 at 5 %");
    }

    #[test]
    fn ticks_that_all_have_one_phase_say_nothing() {
        let clock: Vec<f64> = (0..60).map(|n| f64::from(n) * S).collect();
        let late: Vec<f64> = clock.iter().copied().step_by(7).collect();
        assert_eq!(beat(&late, &clock, &PERIODS, 0.01), None);
    }

    #[test]
    fn few_events_are_no_beat() {
        assert_eq!(beat(&[0.0, S, 2.0 * S], &clock(), &PERIODS, 0.05), None);
        assert!(fold(&[], 1.0).is_none());
    }
}
