//! Two sets of recordings.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use explain::{Compared, ComparedRun};
use model::{Run, RunsComparison};
use report::export::difference::{self, FlameSide};
use store::Store;

use super::{Options, Side};
use crate::failure::Failure;
use crate::output::{self, Screen, tell};
use crate::place::Place;
use crate::stored::{self, StoreOptions};

/// Runs of a side that are loaded for a flame graph: each takes its megabytes of memory.
const MOST_DRAWN: usize = 100;

/// Compares them, and draws what differs.
pub fn compare(
    options: &Options,
    store: &StoreOptions,
    sides: &[Side; 2],
) -> Result<ExitCode, Failure> {
    if options.threshold.is_some() {
        let what = "--threshold is for benchmarks; 'whylag prove --expect' judges recordings";
        return Err(Failure::Usage(what.to_owned()));
    }
    let flame = options.flame.as_deref();
    let place =
        flame.map(|path| Place::of(Some(path), store.path().ok().as_deref())).transpose()?;
    let [a, b] = [compared(store, &sides[0])?, compared(store, &sides[1])?];
    let comparison =
        explain::compare_recordings(&a, &b).map_err(|error| Failure::Usage(error.to_string()))?;
    let (mut out, style) = output::stdout();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &comparison).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::recordings::write(&mut out, &comparison, &style)?;
    }
    out.flush()?;
    if let (Some(place), Some(path)) = (place, flame) {
        draw(store, sides, &comparison, place, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compared(store: &StoreOptions, side: &Side) -> Result<Compared, Failure> {
    let runs = side.runs.iter().map(|chosen| {
        let header = chosen.summary.header.clone();
        let (of_run, id) = stored::choose(store, Some(&chosen.name))?;
        // What is no recording has no figures either, and the comparison says so.
        let figures = match of_run.figures(id)? {
            None if !explain::is_recording(&header) => model::RunFigures::default(),
            _ => stored::figures(&of_run, id)?,
        };
        Ok(ComparedRun { id, header, figures })
    });
    let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
    Ok(Compared { name: side.name.clone(), runs })
}

fn draw(
    store: &StoreOptions,
    sides: &[Side; 2],
    comparison: &RunsComparison,
    place: Place,
    path: &Path,
) -> Result<(), Failure> {
    let loaded = |side: &Side| -> Result<Vec<Run>, Failure> {
        if side.runs.len() > MOST_DRAWN {
            return Err(Failure::Usage(format!(
                "--flame takes up to {MOST_DRAWN} runs a side, {} has {}",
                side.name,
                side.runs.len()
            )));
        }
        side.runs.iter().map(|run| Ok(stored::load(store, Some(&run.name))?.1)).collect()
    };
    let (a, b) = (loaded(&sides[0])?, loaded(&sides[1])?);
    let flame = |name, runs, units| FlameSide { name, runs, units };
    let a = flame(&comparison.a.name, &a[..], comparison.a.units);
    let b = flame(&comparison.b.name, &b[..], comparison.b.units);
    place.fill(|out| {
        let mut out = Screen::new(BufWriter::new(out), false);
        difference::write(&mut out, &a, &b, &comparison.unit)?;
        Ok(out.flush()?)
    })?;
    tell(format_args!("{} has the stacks that differ", path.display()));
    Ok(())
}
