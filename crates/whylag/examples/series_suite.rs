//! Writes made-up series of runs for bench-peers/series.sh: `series_suite FOLDER SETS` makes SETS
//! stores of 50 runs of each kind, and beside each what other tools take, as JSON.

#![allow(clippy::unwrap_used, reason = "a program for a measurement may panic")]

use std::error::Error;
use std::path::Path;

use model::{LatencyFigure, RunEnd, RunFigures, RunHeader, Target};
use store::{Sqlite, Store};

const RUNS: usize = 50;
/// The first run that is other, where one is.
const CHANGED: usize = 30;
/// Requests of a run.
const REQUESTS: usize = 4_000;
/// Noise between runs, as a part.
const NOISE: f64 = 0.02;
const DAY_NS: i64 = 86_400_000_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Stationary,
    HeavyTails,
    Correlated,
    Step,
    SecondMode,
}

const KINDS: [(&str, Kind); 5] = [
    ("stationary", Kind::Stationary),
    ("heavy-tails", Kind::HeavyTails),
    ("correlated", Kind::Correlated),
    ("step", Kind::Step),
    ("second-mode", Kind::SecondMode),
];

fn normal(lot: &mut fastrand::Rng) -> f64 {
    let (u, v) = (lot.f64().max(1e-12), lot.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// The latencies of a run, ns, in order: log-normal, longer as a whole by `noise`.
fn run(lot: &mut fastrand::Rng, noise: f64, two_modes: bool) -> Vec<f64> {
    let mut values: Vec<f64> = (0..REQUESTS)
        .map(|_| {
            // A fifth of them is three times as fast, the others as much slower: the mean stays.
            let mode = match two_modes {
                true if lot.f64() < 0.2 => 1.0 / 3.0,
                true => (1.0 - 0.2 / 3.0) / 0.8,
                false => 1.0,
            };
            1e5 * mode * (noise + 0.3 * normal(lot)).exp()
        })
        .collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The noise of a run as a whole.
fn noise_of(kind: Kind, lot: &mut fastrand::Rng, last: &mut f64) -> f64 {
    let mut news = normal(lot);
    if kind == Kind::HeavyTails && lot.f64() < 0.1 {
        news *= 6.0;
    }
    let keep: f64 = if kind == Kind::Correlated { 0.5 } else { 0.0 };
    *last = keep * *last + (1.0 - keep * keep).sqrt() * news;
    NOISE * *last
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, sets] = &arguments[..] else { return Err("series_suite FOLDER SETS".into()) };
    let mut lot = fastrand::Rng::with_seed(17);
    for (name, kind) in KINDS {
        for set in 0..sets.parse::<usize>()? {
            write_set(Path::new(folder), &format!("{name}-{set}"), kind, RUNS, &mut lot)?;
        }
    }
    // For the time that it takes: a thousand runs with as many figures as a recording has.
    write_set(Path::new(folder), "thousand", Kind::Step, 1_000, &mut lot)
}

fn write_set(
    folder: &Path,
    name: &str,
    kind: Kind,
    runs: usize,
    lot: &mut fastrand::Rng,
) -> Result<(), Box<dyn Error>> {
    let mut store = Sqlite::open(&folder.join(format!("{name}.db")))?;
    let (mut p50, mut p99, mut mean) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = 0.0;
    for place in 0..runs {
        let is_other = place >= CHANGED;
        let step = if kind == Kind::Step && is_other { 2.0 * NOISE } else { 0.0 };
        let noise = noise_of(kind, lot, &mut last) + step;
        let values = run(lot, noise, kind == Kind::SecondMode && is_other);
        let at = |q: f64| values[((values.len() - 1) as f64 * q) as usize];
        let carried = LatencyFigure::PROBABILITIES.into_iter().take_while(|q| *q <= 0.995);
        let quantiles_ns: Vec<u64> = carried.map(|q| at(q) as u64).collect();
        p50.push(at(0.5));
        p99.push(at(0.99));
        mean.push(values.iter().sum::<f64>() / values.len() as f64);
        put(&mut store, place, runs, LatencyFigure { count: REQUESTS as u64, quantiles_ns })?;
    }
    let json = serde_json::json!({ "p50": p50, "p99": p99, "mean": mean });
    std::fs::write(folder.join(format!("{name}.json")), json.to_string())?;
    Ok(())
}

fn put(
    store: &mut Sqlite,
    place: usize,
    runs: usize,
    latency: LatencyFigure,
) -> Result<(), Box<dyn Error>> {
    let mut figures = RunFigures { wall_ns: 1, ..RunFigures::default() };
    figures.latencies.insert("request tcp :80".to_owned(), latency.clone());
    if runs > RUNS {
        for n in 0..30 {
            figures.latencies.insert(format!("syscall:{n}"), latency.clone());
        }
        for n in 0..150 {
            figures.facts.insert(format!("sysctl.made.up.{n}"), "a value of a fact".to_owned());
        }
    }
    let header = RunHeader {
        started_unix_ns: place as i64 * DAY_NS,
        target: Target::Command(vec!["./server".to_owned()]),
        recorder_pid: std::process::id(),
        ..RunHeader::default()
    };
    let id = store.begin(&header)?;
    store.finish(id, &RunEnd { ended_ns: 1, exit_status: Some(0), reason: "done".to_owned() })?;
    store.put_figures(id, &figures)?;
    Ok(())
}
