//! `whylag export`: a run as one file, or for other tools.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use model::Run;
use report::export::svg::SvgError;
use store::Store;

use crate::failure::Failure;
use crate::output::{Screen, tell};
use crate::place::Place;
use crate::stored::{self, RunName, StoreOptions};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// All that is stored of the run, as one file that verbs which read a run take for a number
    Run,
    /// The run with its longest outliers, as one JSON object
    Json,
    /// Off-CPU stacks (with --on-cpu those sampled on a CPU), one line each with microseconds, for
    /// flame graph tools
    Folded,
    /// The off-CPU flame graph (with --on-cpu the on-CPU one), with search and zoom
    Svg,
    /// The histograms, a line per second and metric; of a benchmark, a line per step
    Csv,
    /// Folded wake-up chains (waiter; waker; what the waker did meanwhile), one line each with
    /// microseconds, for flame graph tools
    Wakers,
}

/// Options of `export`.
#[derive(Args)]
#[command(after_help = "\
A run has names of processes and files, command lines and facts of the host; a
file of it has all of them, and is for its owner only. One that is there already
is replaced when all is written.

Example:
  whylag export 7 --format run -o x.whylag    then, anywhere: whylag explain x.whylag
  whylag export --format svg -o offcpu.svg    then open it in a browser
  whylag export 7 --format svg --on-cpu --thread 4711 -o oncpu.svg
  whylag export 7 --format csv > run7.csv
  whylag export --format wakers > wakers.folded")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it, or a file that 'export --format run' wrote
    /// [default: the newest]
    run: Option<RunName>,
    /// What to write
    #[arg(long)]
    format: Format,
    /// On-CPU stacks (sampled) instead of off-CPU ones; for folded and svg
    #[arg(long)]
    on_cpu: bool,
    /// Only this thread
    #[arg(long, value_name = "TID", requires = "on_cpu")]
    thread: Option<u32>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Exports.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    if options.on_cpu && !matches!(options.format, Format::Folded | Format::Svg) {
        return Err(Failure::Usage("--on-cpu is of --format folded and svg".to_owned()));
    }
    let place = Place::of(options.output.as_deref(), store.path().ok().as_deref())?;
    if options.format == Format::Run && place.is_terminal() {
        let what = "a run file is compressed: give it a name with -o, or redirect the output";
        return Err(Failure::Usage(what.to_owned()));
    }
    let (store, id) = stored::choose(store, options.run.as_ref())?;
    if options.format == Format::Run {
        place.fill(|out| Ok(store.export(id, out)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = stored::judged(store.load(id)?);
    if matches!(options.format, Format::Folded | Format::Svg | Format::Wakers) {
        stored::must_be_recorded(&run, options.run.as_ref())?;
    }
    place.fill(|out| {
        let mut out = Screen::new(BufWriter::new(out), false);
        match options.on_cpu {
            true => write_on_cpu(options, &run, &mut out)?,
            false => write_for_others(options.format, &run, &mut out)?,
        }
        Ok(out.flush()?)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write_for_others(format: Format, run: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    match format {
        Format::Run => {}
        Format::Json => report::export::json::write(out, run)?,
        Format::Csv => report::export::csv::write(out, run)?,
        Format::Wakers => report::export::wakers::write(out, run)?,
        Format::Folded => {
            let coverage = report::export::folded::write(out, run)?;
            tell(coverage);
        }
        Format::Svg => tell(report::export::svg::write(out, run).map_err(not_drawn)?),
    }
    Ok(())
}

fn write_on_cpu(options: &Options, run: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    let sampled = match options.format {
        Format::Svg => {
            report::export::svg::write_on_cpu(out, run, options.thread).map_err(not_drawn)?
        }
        _ => report::export::on_cpu::write(out, run, options.thread)?,
    };
    tell(sampled);
    Ok(())
}

fn not_drawn(error: SvgError) -> Failure {
    match error {
        SvgError::Io(error) => error.into(),
        error => Failure::Failed(error.into()),
    }
}
