//! `whylag runs`: what is stored.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use model::RunSummary;
use serde::Serialize;

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
  whylag runs --set before                     what 'record --set before' recorded")]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// A run, and the size of the store that it is in.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    run: RunSummary,
    store_bytes: u64,
}

/// Lists.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let store = store.open_to_read()?;
    let runs = options.selection.of(&store)?;
    let store_bytes = store.file_size();
    let (mut out, style) = output::stdout();
    if options.json {
        let runs: Vec<_> = runs.into_iter().map(|run| Listed { run, store_bytes }).collect();
        serde_json::to_writer_pretty(&mut out, &runs).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::runs::write(&mut out, &runs, store_bytes, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
