//! `whylag export`: a run for other tools.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use report::export::svg::SvgError;

use crate::failure::Failure;
use crate::{output, stored};

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Everything, as one JSON object
    Json,
    /// Off-CPU stacks, one line each with microseconds, for flame graph tools
    Folded,
    /// The off-CPU flame graph, with search and zoom
    Svg,
    /// The histograms, a line per second and metric; of a benchmark, a line per step
    Csv,
}

/// Options of `export`.
#[derive(Args)]
#[command(after_help = "\
Example:
  whylag export --format svg -o offcpu.svg    then open it in a browser
  whylag export 7 --format csv > run7.csv")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it [default: the newest]
    run: Option<i64>,
    /// What to write
    #[arg(long)]
    format: Format,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Exports.
pub fn run(options: &Options, store: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut run = stored::load(store, options.run)?;
    run.jitter = explain::timers(&run).map(|judged| judged.jitter);
    if matches!(options.format, Format::Folded | Format::Svg) {
        stored::must_be_recorded(&run)?;
    }
    let mut out: Box<dyn Write> = match &options.output {
        Some(path) => {
            let file = File::create(path)
                .with_context(|| format!("cannot write {}", path.display()))
                .map_err(|error| Failure::Usage(format!("{error:#}")))?;
            Box::new(BufWriter::new(file))
        }
        None => Box::new(output::stdout().0),
    };
    match options.format {
        Format::Json => report::export::json::write(&mut out, &run)?,
        Format::Csv => report::export::csv::write(&mut out, &run)?,
        Format::Folded => {
            let coverage = report::export::folded::write(&mut out, &run)?;
            eprintln!("whylag: {coverage}");
        }
        Format::Svg => match report::export::svg::write(&mut out, &run) {
            Ok(coverage) => eprintln!("whylag: {coverage}"),
            Err(SvgError::Io(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::Failed(error.into())),
        },
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
