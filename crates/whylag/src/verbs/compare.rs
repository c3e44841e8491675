//! `whylag compare`: two benchmark runs, step by step.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::output;
use crate::stored::{self, RunName, StoreOptions};

/// Practical threshold, as a part.
const THRESHOLD: f64 = 0.05;

/// Options of `compare`.
#[derive(Args)]
#[command(after_help = "\
A step is called slower or faster only if its whole interval, with the noise
between runs in it, is beyond the threshold, and a test over its rounds agrees.
With --threshold the exit status is 3 if a step is slower.

Example:
  whylag compare 7 8                  run 8 against run 7
  whylag compare 7 8 --threshold 10%  exit status 3 if a step is 10 % slower
  whylag compare a.whylag 8           run 8 against the run of a file")]
pub struct Options {
    /// Number of the first run, as 'whylag runs' lists it, or a file that 'export --format run'
    /// wrote: the baseline
    first: RunName,
    /// The second run, likewise
    second: RunName,
    /// Smaller differences do not matter, in percent [default: 5%]
    #[arg(long, value_name = "PCT", value_parser = percent)]
    threshold: Option<f64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A percentage as a part.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 1000.0 => Ok(percent / 100.0),
        _ => Err("a threshold is a percentage above 0 and up to 1000, such as 5%".to_owned()),
    }
}

/// Compares.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let (_, first) = stored::load(store, Some(&options.first))?;
    let (_, mut second) = stored::load(store, Some(&options.second))?;
    let of_files =
        [&options.first, &options.second].iter().any(|name| matches!(name, RunName::File(_)));
    if of_files && first.id == second.id {
        // Two stores may each have a run of this number.
        second.id.0 += 1;
    }
    let threshold = options.threshold.unwrap_or(THRESHOLD);
    let compared = explain::compare_benchmarks(&first, &second, threshold)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let (mut out, style) = output::stdout();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &compared).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        if of_files {
            let (a, b) = (&options.first, &options.second);
            writeln!(out, "Run {} here is {a}, run {} is {b}.", first.id, second.id)?;
        }
        report::compare::write(&mut out, &compared, &style)?;
    }
    out.flush()?;
    let is_crossed = options.threshold.is_some() && compared.slower() > 0;
    Ok(if is_crossed { ExitCode::from(3) } else { ExitCode::SUCCESS })
}
