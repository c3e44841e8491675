//! `whylag explain`: the causes of a stored run.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::{output, stored};

/// Options of `explain`.
#[derive(Args)]
#[command(after_help = "\
Example:
  whylag explain             the newest run
  whylag explain 7 --json    run 7 as one JSON object")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it [default: the newest]
    run: Option<i64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Explains.
pub fn run(options: &Options, store: Option<&Path>) -> Result<ExitCode, Failure> {
    let run = stored::load(store, options.run)?;
    let explanation = explain::explain(&run);
    let (mut out, style) = output::stdout();
    if options.json {
        report::json::write_explanation(&mut out, &explanation, &run)?;
    } else {
        report::explanation::write(&mut out, &explanation, &run, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
