//! `whylag runs`: what is stored.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use store::Store;

use crate::failure::Failure;
use crate::{output, stored};

/// Options of `runs`.
#[derive(Args)]
#[command(after_help = "Example:\n  whylag runs")]
pub struct Options {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Lists.
pub fn run(options: &Options, store: Option<&Path>) -> Result<ExitCode, Failure> {
    let runs = stored::open(store)?.runs()?;
    let (mut out, style) = output::stdout();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &runs).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::runs::write(&mut out, &runs, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
