//! `whylag show`: one run in full.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::output;
use crate::stored::{self, RunName, StoreOptions};

/// Options of `show`.
#[derive(Args)]
#[command(after_help = "\
Example:
  whylag show 7 | less
  whylag show x.whylag    the run of a file")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it, or a file that 'export --format run' wrote
    /// [default: the newest]
    run: Option<RunName>,
    /// Print the whole run as one JSON object, as 'export --format json' does
    #[arg(long)]
    json: bool,
}

/// Shows.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let (_, run) = stored::load(store, options.run.as_ref())?;
    let run = stored::judged(run);
    let (mut out, style) = output::stdout();
    if options.json {
        report::export::json::write(&mut out, &run)?;
    } else {
        let messages = explain::slow_messages(&run);
        let name = options.run.as_ref().map_or_else(|| run.id.to_string(), RunName::to_string);
        let notes = explain::annotations(&run, messages);
        report::show::write(&mut out, &run, &name, &notes, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
