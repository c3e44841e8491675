//! What was seen of periodic timers.

use serde::{Deserialize, Serialize};

use crate::{Finding, Histogram, Leg, RuledOut};

/// Precision of the histograms of lateness: buckets 0.78 % wide.
pub const PRECISION_JITTER: u8 = 7;

/// A run of `whylag jitter`: what was measured, and what `explain` makes of it.
///
/// A run keeps what was measured. Laws, beats, pairs, legs, findings and what is ruled out are
/// empty in the store, and are judged anew when the run is printed; only runs that were stored
/// before that carry them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// What was judged instead of whylag's own timers.
    pub program: Option<JitterProgram>,
    /// What was changed on request, such as `SCHED_FIFO 80`; nothing else was.
    pub changed: Vec<String>,
    /// Ticks later than this were asked about.
    pub over_ns: Option<u64>,
    /// One tick of the kernel's low-resolution clock, 1/HZ.
    pub jiffy_ns: u64,
    /// One per source and interval, in the order they were measured.
    pub series: Vec<JitterSeries>,
    /// How lateness depends on the interval, per source.
    pub laws: Vec<JitterLaw>,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW, ppm: positive if the former runs faster.
    pub drift_ppm: Option<Estimate>,
    /// whylag's own timer, run with what was judged, to see what this host adds.
    pub controls: Vec<JitterControl>,
    /// An integer conversion factor that was asked about.
    pub conversion: Option<Conversion>,
    /// Named causes, the largest share of the lateness first.
    pub findings: Vec<Finding>,
    /// What is not the cause, and the datum that excludes it, if nothing is named.
    pub ruled_out: Vec<RuledOut>,
    /// What else there is to say: warnings, and what could not be measured or judged.
    pub notes: Vec<String>,
}

impl Jitter {
    /// Ticks of a run that are kept one by one, of all its series together: 192 MB.
    pub const MOST_TICKS: usize = 8_000_000;

    /// All but the ticks of its series.
    pub fn without_ticks(&self) -> Jitter {
        Jitter {
            program: self.program.clone(),
            changed: self.changed.clone(),
            series: self.series.iter().map(JitterSeries::without_ticks).collect(),
            laws: self.laws.clone(),
            controls: self.controls.clone(),
            conversion: self.conversion.clone(),
            findings: self.findings.clone(),
            ruled_out: self.ruled_out.clone(),
            notes: self.notes.clone(),
            ..*self
        }
    }

    /// Ticks of each series that are kept: all, or, where they are too many together, so many that
    /// only the longest series are cut.
    pub fn kept_of_each(&self) -> usize {
        let mut lengths: Vec<usize> = self.series.iter().map(|series| series.ticks.len()).collect();
        lengths.sort_unstable();
        let mut left = Jitter::MOST_TICKS;
        for (before, length) in lengths.iter().enumerate() {
            let share = left / (lengths.len() - before);
            if *length > share {
                return share;
            }
            left -= length;
        }
        Jitter::MOST_TICKS
    }
}

/// Ticks of a series, apart from it: the next ones of those that are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesTicks {
    /// Place of the series among those of the run, from 0.
    pub series: usize,
    /// In order.
    pub ticks: Vec<Tick>,
}

/// A short measurement of clock_nanosleep with a timer slack of 1 ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterControl {
    /// Time asked for.
    pub asked_ns: u64,
    /// Its median lateness.
    pub late_ns: i64,
    /// Median absolute deviation from it.
    pub away_ns: i64,
    /// Ticks.
    pub n: u64,
}

/// Nanoseconds per tick, as a program's integer arithmetic has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// The factor, ns per tick.
    pub factor_ns: f64,
    /// What it should be, ns per tick, if known.
    pub true_ns: Option<f64>,
    /// True if `true_ns` is not given but follows from the measured law.
    pub inferred: bool,
    /// Error of every time asked for, ppm; positive: late.
    pub error_ppm: Option<f64>,
    /// Error that rounding to whole nanoseconds may cause at this size, ppm.
    pub largest_error_ppm: f64,
    /// The bound asked for, ppm.
    pub bound_ppm: f64,
    /// Resolution of the factor that keeps to it, ns.
    pub needed_ns: f64,
    /// Bits after the binary point that this takes.
    pub needed_bits: u32,
}

/// A program that printed its own ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterProgram {
    /// Process id.
    pub pid: u32,
    /// Lines that were no tick.
    pub other_lines: u64,
    /// Its threads, as seen while it lived.
    pub threads: Vec<JitterThread>,
}

/// A thread that waits for timers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterThread {
    /// Thread id.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// Timer slack, ns; `None` if it cannot be read.
    pub slack_ns: Option<u64>,
    /// `SCHED_OTHER`, `SCHED_FIFO` ...
    pub policy: String,
    /// Real-time priority, 0 if none.
    pub priority: u32,
}

impl JitterThread {
    /// True if timer slack does not apply to it, and real-time throttling may.
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy.as_str(), "SCHED_FIFO" | "SCHED_RR")
    }
}

/// The ticks of one source at one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterSeries {
    /// `timerfd`, `clock_nanosleep` ..., `program`.
    pub source: String,
    /// Time from one intended tick to the next.
    pub interval_ns: u64,
    /// The thread that measured; `None` for a program that printed its ticks.
    pub thread: Option<JitterThread>,
    /// When it began, CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, for phases in the second of the wall clock.
    pub to_wall_ns: i64,
    /// Ticks that should have come in its time.
    pub intended: u64,
    /// Of these, how many had passed already when the thread was ready to wait for them: each
    /// counts with its own lateness.
    pub missed: u64,
    /// How many were later than `over_ns`.
    pub over: u64,
    /// How late ticks were that came at their time or after it.
    pub late: Histogram,
    /// How early those were that came before their time.
    pub early: Histogram,
    /// The ticks that are judged, one by one: the first million, or fewer
    /// ([`Jitter::kept_of_each`]).
    pub ticks: Vec<Tick>,
    /// The latest ticks, latest first.
    pub worst: Vec<LateTick>,
    /// Whether ticks later than `over_ns` come at a beat.
    pub periods: Vec<Period>,
    /// Early ticks that a late one follows, with net zero; `None`: there are none.
    pub pairs: Option<EarlyLatePairs>,
}

impl JitterSeries {
    /// True if more ticks came than are kept one by one. The first tick of a program is not among
    /// these: nobody knows how long it was waited for.
    pub fn is_cut(&self) -> bool {
        (self.ticks.len() as u64).saturating_add(1) < self.intended
    }

    fn without_ticks(&self) -> JitterSeries {
        JitterSeries {
            source: self.source.clone(),
            thread: self.thread.clone(),
            late: self.late.clone(),
            early: self.early.clone(),
            ticks: Vec::new(),
            worst: self.worst.clone(),
            periods: self.periods.clone(),
            pairs: self.pairs.clone(),
            ..*self
        }
    }

    /// Mean lateness, early ticks negative; `None` without ticks.
    pub fn mean_ns(&self) -> Option<f64> {
        let n = self.late.count() + self.early.count();
        let sum = self.late.sum() as f64 - self.early.sum() as f64;
        (n > 0).then(|| sum / n as f64)
    }
}

/// One tick: intended time, how late it was (negative: early), and how long the thread had slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick(
    /// Intended time, CLOCK_MONOTONIC.
    pub u64,
    /// Lateness, ns.
    pub i64,
    /// Time asked for: from the tick before to the intended time, ns; 0: it had passed already.
    pub u64,
);

/// A late tick, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateTick {
    /// Its number in the series, from 0.
    pub number: u64,
    /// When it should have come, CLOCK_MONOTONIC.
    pub intended_ns: u64,
    /// Lateness, ns.
    pub late_ns: i64,
    /// Parts of the way from the intended time to the moment it was served, in order, as recorded
    /// in the kernel: what, and how long. Empty if nothing was recorded.
    pub legs: Vec<Leg>,
    /// What made it late, in words.
    pub because: Vec<String>,
}

impl LateTick {
    /// When it came, CLOCK_MONOTONIC.
    pub fn served_ns(&self) -> u64 {
        self.intended_ns.saturating_add_signed(self.late_ns)
    }
}

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// How lateness depends on the interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterLaw {
    /// The source.
    pub source: String,
    /// The model that describes it best: `constant`, `proportional`, `saturating`, `stepped 1 ms`,
    /// `stepped jiffy`, `poll slack`; `None` if nothing can be said.
    pub best: Option<String>,
    /// In one sentence, with figures; or why there is none.
    pub text: String,
    /// Ticks used, thinned so that no interval drowns another.
    pub n: u64,
    /// Different times asked for.
    pub intervals: u64,
    /// The longest of these over the shortest.
    pub spread: f64,
    /// All models that were fitted, the best first.
    pub models: Vec<LawModel>,
}

/// A model of lateness that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawModel {
    /// As in `best`.
    pub name: String,
    /// The formula with its figures and units.
    pub formula: String,
    /// (name and unit, estimate).
    pub figures: Vec<(String, Estimate)>,
    /// What it leaves: mean absolute residual of ticks that it was not fitted to (10-fold cross
    /// validation), ns.
    pub left_ns: f64,
    /// Why it is not the one; empty for the best.
    pub because: String,
}

/// A beat in the late ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// Length.
    pub period_ns: u64,
    /// Where in the period of the wall clock they come, ns.
    pub phase_ns: u64,
    /// How concentrated they are there, 0 to 1: the mean resultant length.
    pub concentration: f64,
    /// Late ticks; those in a row count once.
    pub n: u64,
    /// p of Rayleigh's test, times the number of periods that were tried.
    pub p: f64,
}

/// Ticks that come early and are followed by one as much too late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlyLatePairs {
    /// How many pairs.
    pub pairs: u64,
    /// Mean change of lateness at their early ticks, ns, negative.
    pub early_ns: f64,
    /// Mean change at the ticks after them, ns.
    pub late_ns: f64,
    /// Mean sum of a pair, ns.
    pub net_ns: f64,
    /// Median time from one to the next, ns, if there are several.
    pub every_ns: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_ticks_the_longest_series_lose_some() {
        let series = |ticks: usize| JitterSeries {
            source: "timerfd".to_owned(),
            interval_ns: 1,
            thread: None,
            started_ns: 0,
            to_wall_ns: 0,
            intended: 0,
            missed: 0,
            over: 0,
            late: Histogram::new(PRECISION_JITTER),
            early: Histogram::new(PRECISION_JITTER),
            ticks: vec![Tick(0, 0, 0); ticks],
            worst: Vec::new(),
            periods: Vec::new(),
            pairs: None,
        };
        let kept = |lengths: &[usize]| {
            let series = lengths.iter().map(|ticks| series(*ticks)).collect();
            Jitter { series, ..Jitter::default() }.kept_of_each()
        };
        let most = Jitter::MOST_TICKS;
        assert_eq!(kept(&[]), most);
        assert_eq!(kept(&[most / 2, most / 2]), most);
        assert_eq!(kept(&[most, 100, most, 0]), (most - 100) / 2);
    }
}
