//! The ticks of one source at one interval, as they come.

use model::jitter::PRECISION_JITTER;
use model::{Histogram, JitterSeries, JitterThread, LateTick, Tick};

/// Ticks that are kept one by one, to be judged: 24 MB. Histograms hold all.
const KEPT: usize = 1_000_000;
/// The latest ones that are kept.
const WORST: usize = 30;

/// A series that grows.
#[derive(Debug)]
pub struct Series {
    summary: JitterSeries,
    over_ns: u64,
    before: Option<u64>,
    recent: Recent,
}

/// Ticks of the last stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// How late, as far as they were not early.
    pub late: Histogram,
    /// How many were early.
    pub early: u64,
    /// How many were late by more than was asked about.
    pub over: u64,
}

impl Recent {
    fn new() -> Recent {
        Recent { late: Histogram::new(PRECISION_JITTER), early: 0, over: 0 }
    }
}

impl Series {
    /// An empty one.
    pub fn new(source: &str, interval_ns: u64, over_ns: Option<u64>) -> Series {
        let summary = JitterSeries {
            source: source.to_owned(),
            interval_ns,
            thread: None,
            started_ns: clock::monotonic_ns(),
            to_wall_ns: clock::monotonic_to_unix_ns(),
            intended: 0,
            missed: 0,
            over: 0,
            late: Histogram::new(PRECISION_JITTER),
            early: Histogram::new(PRECISION_JITTER),
            ticks: Vec::new(),
            worst: Vec::new(),
            periods: Vec::new(),
            pairs: None,
        };
        let over_ns = over_ns.unwrap_or(u64::MAX);
        Series { summary, over_ns, before: None, recent: Recent::new() }
    }

    /// The thread that measures, and when it began to wait for the first tick.
    pub fn begin(&mut self, thread: JitterThread, started_ns: u64) {
        self.summary.thread = Some(thread);
        self.summary.started_ns = started_ns;
        self.before = Some(started_ns);
    }

    /// What is known so far.
    pub fn summary(&self) -> &JitterSeries {
        &self.summary
    }

    /// All of it. A program did not say its interval: it is the usual one.
    pub fn measured(self) -> JitterSeries {
        let mut summary = self.summary;
        if summary.interval_ns == 0 {
            summary.interval_ns = usual_interval(&summary.ticks);
        }
        summary
    }

    /// The ticks since this was last asked.
    pub fn take_recent(&mut self) -> Recent {
        std::mem::replace(&mut self.recent, Recent::new())
    }

    /// The tick of `intended` was served at `actual`.
    pub fn tick(&mut self, intended: u64, actual: u64) {
        let late = actual as i64 - intended as i64;
        let asked = self.before.map(|before| intended.saturating_sub(before));
        let number = self.summary.intended;
        self.summary.intended += 1;
        self.summary.missed += u64::from(asked == Some(0));
        match u64::try_from(late) {
            Ok(late) => {
                let over = u64::from(late > self.over_ns);
                self.summary.over += over;
                self.recent.over += over;
                self.summary.late.record(late);
                self.recent.late.record(late);
            }
            Err(_) => {
                self.summary.early.record(late.unsigned_abs());
                self.recent.early += 1;
            }
        }
        self.before = Some(self.before.unwrap_or(0).max(actual));
        if self.summary.ticks.len() < KEPT
            && let Some(asked) = asked
        {
            self.summary.ticks.push(Tick(intended, late, asked));
        }
        // Those that had passed are late for the same reason as the one before them.
        if asked != Some(0) {
            self.keep_if_among_the_worst(number, intended, late);
        }
    }

    fn keep_if_among_the_worst(&mut self, number: u64, intended_ns: u64, late_ns: i64) {
        let worst = &mut self.summary.worst;
        let place = worst.partition_point(|other| other.late_ns >= late_ns);
        if place >= WORST || late_ns <= 0 {
            return;
        }
        worst.truncate(WORST - 1);
        worst.insert(place, LateTick { number, intended_ns, late_ns, ..LateTick::default() });
    }
}

/// The median time between intended ticks.
fn usual_interval(ticks: &[Tick]) -> u64 {
    let gaps: Vec<f64> = ticks.windows(2).map(|two| two[1].0.abs_diff(two[0].0) as f64).collect();
    stats::quantile::median(&gaps).unwrap_or(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_of_500_ms_makes_500_late_ticks_with_their_true_mean() {
        let mut series = Series::new("made up", 1_000_000, Some(100_000));
        series.begin(JitterThread::default(), 0);
        for n in 1..=5000u64 {
            let intended = n * 1_000_000;
            let stopped = (2_000_000_000..2_500_000_000).contains(&intended);
            series.tick(intended, if stopped { 2_500_000_000 } else { intended + 5_000 });
        }
        let summary = series.summary();
        // All but the first; and the one that was due at the very moment it went on.
        assert_eq!((summary.intended, summary.missed), (5000, 500));
        assert_eq!(summary.over, 500);
        let truth = (500.0 * 250_500_000.0 + 4500.0 * 5_000.0) / 5000.0;
        assert!((summary.mean_ns().unwrap() / truth - 1.0).abs() < 1e-3);
        assert_eq!(summary.worst[0].late_ns, 500_000_000);
        assert_eq!((summary.worst.len(), summary.worst[1].late_ns), (WORST, 5_000));
        assert!(summary.worst.windows(2).all(|two| two[0].late_ns >= two[1].late_ns));
    }

    #[test]
    fn early_ticks_are_negative() {
        let mut series = Series::new("made up", 1_000, None);
        series.begin(JitterThread::default(), 0);
        series.tick(1_000, 400);
        series.tick(2_000, 2_600);
        assert_eq!(series.summary().early.max(), Some(600));
        assert_eq!(series.summary.ticks, [Tick(1_000, -600, 1_000), Tick(2_000, 600, 1_600)]);
        assert_eq!(series.summary().mean_ns(), Some(0.0));
    }
}
