//! Two runs beside each other: how their latencies moved, and which stacks differ.

use explain::{Compared, ComparedRun};
use model::units::count;
use model::{LatencyDelta, RunId};
use report::export::difference::{self, FlameSide, Kind};
use serde::Serialize;

use crate::flame::{Flames, difference_tree};
use crate::run::{Loaded, RunPage};

/// Latencies whose shifts are shown: those that moved most.
const SHIFTS: usize = 40;

/// What `whylag compare` says of two runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Comparison {
    /// In one sentence; or why the two cannot be compared.
    pub summary: String,
    /// What makes it weaker.
    pub warnings: Vec<String>,
    /// How latencies that both have moved, the surest change first.
    pub shifts: Vec<Shift>,
    /// Stacks that differ, as one tree; none if nothing is known of both.
    pub flames: Option<Flames>,
    /// How a stack can differ; frames of the tree name them by place.
    pub kinds: Vec<MovedKind>,
    /// The command that says the same.
    pub command: String,
}

/// The shift function of a latency.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Shift {
    /// As in JSON.
    pub metric: String,
    /// n of both.
    pub about: String,
    /// Quantile by quantile.
    pub points: Vec<ShiftPoint>,
}

/// How far a quantile moved.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ShiftPoint {
    /// Which, 0 to 1.
    pub probability: f64,
    /// After over before.
    pub ratio: f64,
    /// The 95 % band that holds for all quantiles at once: not of single runs.
    pub band: Option<[f64; 2]>,
    /// The ratio, and its band, as people read them.
    pub text: String,
}

/// How a stack differs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MovedKind {
    /// What people read.
    pub name: String,
    /// `#rrggbb`, on a light ground and on a dark one.
    pub color: String,
}

/// Of two runs, the first the one before.
pub fn comparison(loaded: [&Loaded; 2], pages: [&RunPage; 2]) -> Comparison {
    let side = |place: usize| {
        let run = &loaded[place].run;
        let figures = explain::figures(run, &pages[place].explanation);
        let header = run.header.clone();
        let run = ComparedRun { id: RunId(place as i64 + 1), header, figures };
        Compared { name: loaded[place].name.clone(), runs: vec![run] }
    };
    let made = Comparison {
        summary: String::new(),
        warnings: Vec::new(),
        shifts: Vec::new(),
        flames: None,
        kinds: Kind::ALL.into_iter().map(kind).collect(),
        command: format!("whylag compare {} {}", pages[0].name, pages[1].name),
    };
    match explain::compare_recordings(&side(0), &side(1)) {
        Ok(compared) => Comparison {
            summary: compared.summary,
            warnings: compared.warnings,
            shifts: compared.latencies.iter().take(SHIFTS).map(shift).collect(),
            flames: Some(flames(loaded)),
            ..made
        },
        Err(error) => Comparison { summary: error.to_string(), ..made },
    }
}

fn kind(kind: Kind) -> MovedKind {
    let [red, green, blue] = kind.color();
    let color = format!("#{red:02x}{green:02x}{blue:02x}");
    MovedKind { name: format!("{} {}", kind.mark(), kind.name()), color }
}

fn flames([a, b]: [&Loaded; 2]) -> Flames {
    fn of(loaded: &Loaded) -> FlameSide<'_> {
        FlameSide { name: &loaded.name, runs: std::slice::from_ref(&loaded.run), units: 1 }
    }
    let (stacks, branches) = difference::moved(&of(a), &of(b));
    difference_tree(&stacks, branches)
}

fn shift(delta: &LatencyDelta) -> Shift {
    let points = delta.shift.iter().map(|point| ShiftPoint {
        probability: point.probability,
        ratio: point.ratio,
        band: point.band,
        text: match point.band {
            Some([low, high]) => format!("{:.2} ({low:.2} to {high:.2})", point.ratio),
            None => format!("{:.2}", point.ratio),
        },
    });
    let [before, after] = delta.count.map(count);
    Shift {
        metric: delta.name.clone(),
        about: format!("n = {before} before, n = {after} after"),
        points: points.collect(),
    }
}
