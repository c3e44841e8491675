//! Runs that were never recorded: what `record` stores of a run for those who compare many.

use model::{CauseFigure, LatencyFigure, RunEnd, RunFigures, RunHeader, RunId, Target};
use store::{Sqlite, Store};

use super::Lab;

pub const DAY_NS: i64 = 86_400_000_000_000;

/// A run of a second.
pub struct MadeUp {
    pub started_unix_ns: i64,
    pub command: &'static str,
    pub labels: Vec<(&'static str, &'static str)>,
    pub figures: RunFigures,
}

impl MadeUp {
    /// Day 0 is 1970-01-01, noon.
    pub fn on_day(day: usize) -> MadeUp {
        let figures = RunFigures {
            length_ns: 1_000_000_000,
            wall_ns: 1_000_000_000,
            exit_status: Some(0),
            ..RunFigures::default()
        };
        MadeUp {
            started_unix_ns: day as i64 * DAY_NS + DAY_NS / 2,
            command: "./server",
            labels: Vec::new(),
            figures,
        }
    }

    pub fn has_cause(&mut self, cause: &str, wall_share: f64) {
        self.figures.causes.push(CauseFigure {
            cause: cause.to_owned(),
            lost_ns: (wall_share * self.figures.wall_ns as f64) as u64,
            wall_share,
            confidence: 0.9,
            minor: false,
        });
    }

    /// As many facts as a recording has, some of which change now and then.
    pub fn has_facts(&mut self, day: usize) {
        for n in 0..120 {
            let value = if n < 10 { day / (7 + n) % 3 } else { n };
            self.figures.facts.insert(format!("sysctl.made.up.{n}"), value.to_string());
        }
        self.figures.facts.insert("host.name".to_owned(), "a".to_owned());
    }

    /// A latency whose quantiles go up evenly from this one.
    pub fn has_latency(&mut self, name: &str, lowest_ns: f64) {
        let step = |n: usize| (lowest_ns * (1.0 + n as f64 / 10.0)) as u64;
        let quantiles_ns = (0..LatencyFigure::PROBABILITIES.len()).map(step).collect();
        self.figures
            .latencies
            .insert(name.to_owned(), LatencyFigure { count: 100_000, quantiles_ns });
    }

    pub fn store(&self, store: &mut Sqlite) -> RunId {
        let labels = self.labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let header = RunHeader {
            started_unix_ns: self.started_unix_ns,
            target: Target::Command(self.command.split(' ').map(str::to_owned).collect()),
            recorder_pid: std::process::id(),
            labels: labels.collect(),
            ..RunHeader::default()
        };
        let id = store.begin(&header).unwrap();
        let (ended_ns, exit_status) = (self.figures.length_ns, self.figures.exit_status);
        store.finish(id, &RunEnd { ended_ns, exit_status, reason: "done".to_owned() }).unwrap();
        store.put_figures(id, &self.figures).unwrap();
        id
    }
}

impl Lab {
    /// Its store, to write to.
    pub fn write(&self) -> Sqlite {
        Sqlite::open(&self.store()).unwrap()
    }
}
