//! The ticks of one kind of timer, and what is known of them.

use model::{Jitter, JitterControl, JitterLaw, JitterProgram, JitterSeries, JitterThread, Tick};
use stats::law::{Comparison, Law};

use crate::timers::law::{self, Surroundings};
use crate::timers::recorded::Recorded;

/// The name of a program that prints its own ticks, as a source.
pub const PROGRAM: &str = "program";
/// Sleeps, which end up to the timer slack of their thread too late. Other timers have none.
const WITH_SLACK: [&str; 5] = [PROGRAM, "clock_nanosleep", "epoll", "poll", "condvar"];
/// Their calls have a slack of a thousandth of the time asked for, if that is more; and whylag asks
/// them for whole milliseconds, as event loops do.
const POLLS: [&str; 2] = ["epoll", "poll"];

/// A source whose ticks are judged.
pub struct TimerSource<'a> {
    /// Its name.
    pub name: String,
    /// Its law.
    pub law: JitterLaw,
    /// The figures of the law; `None` with too few ticks.
    pub comparison: Option<Comparison>,
    /// The threads whose timers these are.
    pub threads: Vec<JitterThread>,
    /// Their timer slack, if they all have the same and it is known.
    pub slack_ns: Option<u64>,
    /// Its ticks.
    pub series: Vec<&'a JitterSeries>,
    /// The program that it is, if it is none of whylag's own.
    pub program: Option<&'a JitterProgram>,
    /// What the host adds.
    pub controls: &'a [JitterControl],
    /// One jiffy.
    pub jiffy_ns: f64,
    /// What was recorded of the latest ticks.
    pub recorded: Option<Recorded<'a>>,
}

impl<'a> TimerSource<'a> {
    /// The source of this name.
    pub fn of(name: &str, jitter: &'a Jitter) -> TimerSource<'a> {
        let series: Vec<&JitterSeries> =
            jitter.series.iter().filter(|s| s.source == name).collect();
        let threads: Vec<JitterThread> = match &jitter.program {
            Some(program) => program.threads.clone(),
            None => series.iter().filter_map(|series| series.thread.clone()).collect(),
        };
        let slack_ns = threads
            .first()
            .and_then(|first| first.slack_ns)
            .filter(|slack| threads.iter().all(|thread| thread.slack_ns == Some(*slack)));
        let around = Surroundings {
            jiffy_ns: jitter.jiffy_ns,
            slack_ns,
            may_poll: name == PROGRAM || POLLS.contains(&name),
            waking_ns: jitter.controls.iter().map(|control| control.late_ns).min().unwrap_or(0),
        };
        let ticks = series.iter().flat_map(|series| &series.ticks);
        let (law, comparison) = law::of(name, ticks, &around);
        let program = jitter.program.as_ref();
        // whylag's own timers are set as they should be.
        let recorded = program.and_then(|_| Recorded::of(&series));
        TimerSource {
            name: name.to_owned(),
            law,
            comparison,
            threads,
            slack_ns,
            series,
            program,
            controls: &jitter.controls,
            jiffy_ns: jitter.jiffy_ns as f64,
            recorded,
        }
    }

    /// All ticks that are kept.
    pub fn ticks(&self) -> impl Iterator<Item = &'a Tick> {
        self.series.iter().flat_map(|series| &series.ticks)
    }

    /// How many ticks there were.
    pub fn intended(&self) -> u64 {
        self.series.iter().map(|series| series.intended).sum()
    }

    /// Mean lateness of all ticks, ns; not zero.
    pub fn mean_late(&self) -> f64 {
        let means = self.series.iter().filter_map(|s| Some((s.mean_ns()?, s.intended)));
        let (sum, n) =
            means.fold((0.0, 0), |(sum, n), (mean, of)| (sum + mean * of as f64, n + of));
        let mean = sum / n.max(1) as f64;
        if mean.abs() < 1.0 { 1.0 } else { mean }
    }

    /// The lateness of all ticks together.
    pub fn late_ns(&self) -> u64 {
        (self.mean_late().abs() * self.intended() as f64) as u64
    }

    /// By which part of the time asked for lateness grows, if that is its law.
    pub fn growth(&self) -> Option<f64> {
        let comparison = self.comparison.as_ref()?;
        let fit = comparison.fit(Law::Proportional)?;
        fit.factor.filter(|_| comparison.best == Law::Proportional).map(|factor| factor.estimate)
    }

    /// Its thread of real-time priority, if one is.
    pub fn real_time_thread(&self) -> Option<&JitterThread> {
        self.threads.iter().find(|thread| thread.is_real_time())
    }

    /// True if timer slack applies to it, or may apply.
    pub fn has_slack(&self) -> bool {
        WITH_SLACK.contains(&self.name.as_str()) && self.real_time_thread().is_none()
    }

    /// True if whylag itself asks for whole milliseconds.
    pub fn asks_for_whole_ms(&self) -> bool {
        self.program.is_none() && POLLS.contains(&self.name.as_str())
    }
}

/// Sources in the order they were measured.
pub fn names(series: &[JitterSeries]) -> Vec<String> {
    let mut names: Vec<String> = series.iter().map(|series| series.source.clone()).collect();
    names.dedup();
    names
}
