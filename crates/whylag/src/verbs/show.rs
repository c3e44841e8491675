//! `whylag show`: one run in full.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::{output, stored, told};

/// Options of `show`.
#[derive(Args)]
#[command(after_help = "Example:\n  whylag show 7 | less")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it [default: the newest]
    run: Option<i64>,
    /// Print the whole run as one JSON object, as 'export --format json' does
    #[arg(long)]
    json: bool,
}

/// Shows.
pub fn run(options: &Options, store: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut run = stored::load(store, options.run)?;
    run.jitter = explain::timers(&run).map(|judged| judged.jitter);
    let (mut out, style) = output::stdout();
    if options.json {
        report::export::json::write(&mut out, &run)?;
    } else {
        let told = told::messages(&stored::open(store)?, &run)?;
        report::show::write(&mut out, &run, &told, &style)?;
        report::company::write(&mut out, &explain::coincidences(&run), &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
