//! `whylag series`: since when are runs as they are, and what changed then.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use explain::{DISMISSED, SeriesRun};
use model::RunId;
use store::Store;

use crate::failure::Failure;
use crate::output;
use crate::selection::Selection;
use crate::stored::StoreOptions;

/// Options of `series`.
#[derive(Args)]
#[command(after_help = "\
Runs of the same program on the same host are a series: at least 6, and a change is
reported once 3 runs have it. Each change has its date, and which facts of host and
program changed with it. A change that is known is dismissed by the number of its
run, and not reported again.

Example:
  whylag series --command ./nightly
  whylag series --label job=nightly --since 90d
  whylag series --dismiss 41           run 41's change is known
  whylag series --all --json           dismissed ones, too")]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// Mark the change at this run as known: it is no longer reported
    #[arg(long, value_name = "RUN")]
    dismiss: Option<i64>,
    /// Report changes that were dismissed, too
    #[arg(long)]
    all: bool,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Looks for changes.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    if let Some(number) = options.dismiss {
        store.open_to_write()?.set_label(RunId(number), DISMISSED, "dismissed")?;
    }
    let store = store.open_to_read()?;
    let mut runs = Vec::new();
    for run in options.selection.of(&store)? {
        if let Some(figures) = store.figures(run.id)? {
            runs.extend(SeriesRun::of(&run, figures));
        }
    }
    let found = runs.len();
    let mut series = explain::series(runs);
    if series.is_empty() {
        return Err(Failure::Usage(format!(
            "{found} recorded runs were found, and no 6 of the same program on the same host: that \
             many make a series"
        )));
    }
    if !options.all {
        series.iter_mut().for_each(|one| one.changes.retain(|change| !change.dismissed));
    }
    let (mut out, style) = output::stdout();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &series).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::runs_series::write(&mut out, &series, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
