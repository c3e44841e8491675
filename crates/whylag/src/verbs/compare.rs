//! `whylag compare`: two benchmark runs, step by step, or two sets of recordings.

mod recordings;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use model::{RunSummary, Target};
use store::Store;

use crate::failure::Failure;
use crate::output;
use crate::stored::{self, RunName, StoreOptions};

/// Practical threshold, as a part.
const THRESHOLD: f64 = 0.05;

/// Options of `compare`.
#[derive(Args)]
#[command(
    override_usage = "\
whylag compare [OPTIONS] RUN RUN
       whylag compare [OPTIONS] RUN... -- RUN...",
    after_help = "\
A RUN is a number as 'whylag runs' lists it, a range (3..7), a file that 'export
--format run' wrote, or a set: by the name that 'record --set' gave it, or by its
labels (build=42). Of recordings, sums are per unit of work, and something is said
to differ only with 5 runs on each side. Of two benchmarks, a step is called slower
or faster only if its whole interval, with the noise between runs in it, is beyond
the threshold, and a test over its rounds agrees; with --threshold the exit status
is 3 if a step is slower.

Example:
  whylag compare 7 8                  run 8 against run 7
  whylag compare before after         sets, as 'record --set before' made them
  whylag compare 1..5 -- 6 7 9..12    any runs against any others
  whylag compare before after --flame diff.svg
  whylag compare 7 8 --threshold 10%  exit status 3 if a step is 10 % slower
  whylag compare a.whylag 8           run 8 against the run of a file"
)]
pub struct Options {
    /// The baseline and the other run or set; or, with -- behind them, all runs of the baseline
    #[arg(required = true, value_name = "RUN")]
    first: Vec<RunName>,
    /// The runs that are compared with the baseline
    #[arg(last = true, value_name = "RUN")]
    second: Vec<RunName>,
    /// Of benchmarks: ignore differences smaller than this, in percent [default: 5%]
    #[arg(long, value_name = "PCT", value_parser = percent)]
    threshold: Option<f64>,
    /// Of recordings: write what differs as a flame graph, an SVG with search and zoom
    #[arg(long, value_name = "FILE", conflicts_with = "threshold")]
    flame: Option<PathBuf>,
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
    let (first, second) = match (&options.first[..], &options.second[..]) {
        ([first, second], []) => (std::slice::from_ref(first), std::slice::from_ref(second)),
        (_, []) => {
            let what = "name the two sides: two runs or sets, or RUN... -- RUN...";
            return Err(Failure::Usage(what.to_owned()));
        }
        (first, second) => (first, second),
    };
    let sides = [side(store, first)?, side(store, second)?];
    let is_bench = |side: &Side| match &side.runs[..] {
        [run] => matches!(run.summary.header.target, Target::Bench(_)),
        _ => false,
    };
    if sides.iter().any(is_bench) {
        return benchmarks(options, store, &sides[0].runs[0].name, &sides[1].runs[0].name);
    }
    recordings::compare(options, store, &sides)
}

/// The runs of one side.
struct Side {
    /// As the user wrote it.
    name: String,
    runs: Vec<Chosen>,
}

struct Chosen {
    name: RunName,
    summary: RunSummary,
}

fn side(store: &StoreOptions, names: &[RunName]) -> Result<Side, Failure> {
    let words: Vec<String> = names
        .iter()
        .map(|name| match name {
            RunName::Number(number) => format!("run {number}"),
            // The folder of a file says nothing that its name does not.
            RunName::File(path) => {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        })
        .collect();
    let runs = stored::named(store, names)?.into_iter().map(|name| {
        let (store, id) = stored::choose(store, Some(&name))?;
        let mut all = store.runs()?.into_iter();
        let summary = all.find(|summary| summary.id == id).ok_or_else(|| {
            Failure::Usage(format!("there is no run {id}: 'whylag runs' lists what there is"))
        })?;
        Ok(Chosen { name, summary })
    });
    let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
    Ok(Side { name: words.join(", "), runs })
}

fn benchmarks(
    options: &Options,
    store: &StoreOptions,
    a: &RunName,
    b: &RunName,
) -> Result<ExitCode, Failure> {
    if options.flame.is_some() {
        let what = "--flame is for recordings: benchmarks have no stacks";
        return Err(Failure::Usage(what.to_owned()));
    }
    let (_, first) = stored::load(store, Some(a))?;
    let (_, mut second) = stored::load(store, Some(b))?;
    let of_files = [a, b].iter().any(|name| matches!(name, RunName::File(_)));
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
            writeln!(out, "Run {} here is {a}, run {} is {b}.", first.id, second.id)?;
        }
        report::compare::write(&mut out, &compared, &style)?;
    }
    out.flush()?;
    let is_crossed = options.threshold.is_some() && compared.slower() > 0;
    Ok(if is_crossed { ExitCode::from(3) } else { ExitCode::SUCCESS })
}
