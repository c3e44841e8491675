//! `whylag import`: a run from a file into the store.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use store::Store;

use crate::failure::Failure;
use crate::output;
use crate::stored::StoreOptions;

/// Options of `import`.
#[derive(Args)]
#[command(after_help = "\
The verbs that take the number of a run take such a file as well: it has to be
imported only to be kept in the store.

Example:
  whylag import x.whylag")]
pub struct Options {
    /// The file, as 'whylag export --format run' wrote it
    file: PathBuf,
}

/// Imports.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let mut store = store.open_to_write()?;
    let run = store.import(&options.file)?;
    let loaded = store.load(run)?;
    // A run file has none, and grids and series are made of them.
    if explain::is_recording(&loaded.header) {
        store.put_figures(run, &explain::figures(&loaded, &explain::explain(&loaded)))?;
    }
    let (mut out, _) = output::stdout();
    writeln!(out, "Run {run} is stored: 'whylag explain {run}' has its causes.")?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
