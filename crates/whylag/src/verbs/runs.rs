//! `whylag runs`: what is stored.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use explain::{GridRules, GridRun, NoRule, Rule};
use model::{Grid, RunSummary};
use serde::Serialize;
use store::{Sqlite, Store};

use crate::failure::Failure;
use crate::output;
use crate::selection::Selection;
use crate::stored::StoreOptions;

/// Options of `runs`.
#[derive(Args)]
#[command(after_help = "\
Example:
  whylag runs
  whylag runs --label build=42 --since 7d      what is called so, of this week
  whylag runs --cause lazy-binding --command ./server
  whylag runs --set before                     what 'record --set before' recorded
  whylag runs --grid --set nightly             clean and bad runs, and what splits them
  whylag runs --grid --lost 'loss:drops' --recovered 'p99:syscall:read > 5ms'")]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// One column per run: causes, losses, accounts and facts, and what goes with the bad runs
    #[arg(long)]
    grid: bool,
    /// With --grid: a run is lost if this holds of it, such as 'exit != 0', 'loss:drops > 0',
    /// 'p99:syscall:read > 5ms', 'cause:lazy-binding', 'account:NAME > 10%', 'length > 2s' or
    /// 'fact:NAME = VALUE' [default: exit != 0]
    #[arg(long, value_name = "RULE", requires = "grid", value_parser = rule)]
    lost: Option<Rule>,
    /// With --grid: a run that is not lost and of which this holds is recovered [default without
    /// --lost: any cause is named]
    #[arg(long, value_name = "RULE", requires = "grid", value_parser = rule)]
    recovered: Option<Rule>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

fn rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error: NoRule| error.to_string())
}

/// A run, and the size of the store that it is in.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    run: RunSummary,
    store_bytes: u64,
}

/// The runs that have figures, in grids.
fn grids(options: &Options, store: &Sqlite, runs: &[RunSummary]) -> Result<Vec<Grid>, Failure> {
    let mut with_figures = Vec::new();
    for run in runs {
        if let Some(figures) = store.figures(run.id)? {
            with_figures.push(GridRun::of(run, figures));
        }
    }
    if with_figures.is_empty() {
        return Err(Failure::Usage(
            "none of these runs has figures: 'whylag record' stores them with each run".to_owned(),
        ));
    }
    let rules = GridRules { lost: options.lost.clone(), recovered: options.recovered.clone() };
    Ok(explain::grids(&with_figures, &rules))
}

/// Lists.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let store = store.open_to_read()?;
    let runs = options.selection.of(&store)?;
    let store_bytes = store.file_size();
    let (mut out, style) = output::stdout();
    if options.grid {
        let grids = grids(options, &store, &runs)?;
        if options.json {
            serde_json::to_writer_pretty(&mut out, &grids).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            report::grid::write(&mut out, &grids, &style)?;
        }
    } else if options.json {
        let runs: Vec<_> = runs.into_iter().map(|run| Listed { run, store_bytes }).collect();
        serde_json::to_writer_pretty(&mut out, &runs).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::runs::write(&mut out, &runs, store_bytes, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
