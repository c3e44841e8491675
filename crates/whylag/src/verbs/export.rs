//! `whylag export`: a run as one file, or for other tools.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use model::{Run, RunId};
use report::export::svg::SvgError;
use store::{Sqlite, Store, location};

use crate::failure::Failure;
use crate::output;
use crate::stored::{self, RunName};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// All that is stored of the run, as one file that every verb takes instead of a number
    Run,
    /// The run with its longest outliers, as one JSON object
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
A run has names of processes and files, command lines and facts of the host; a
file of it has all of them.

Example:
  whylag export 7 --format run -o x.whylag    then, anywhere: whylag explain x.whylag
  whylag export --format svg -o offcpu.svg    then open it in a browser
  whylag export 7 --format csv > run7.csv")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it, or a file that 'export --format run' wrote
    /// [default: the newest]
    run: Option<RunName>,
    /// What to write
    #[arg(long)]
    format: Format,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Exports.
pub fn run(options: &Options, store: Option<&Path>) -> Result<ExitCode, Failure> {
    if let Some(path) = &options.output {
        must_not_be_store(path, store)?;
    }
    let (store, id) = stored::choose(store, options.run.as_ref())?;
    if options.format == Format::Run {
        write_run(&store, id, options.output.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = stored::judged(store.load(id)?);
    if matches!(options.format, Format::Folded | Format::Svg) {
        stored::must_be_recorded(&run, options.run.as_ref())?;
    }
    let mut out: Box<dyn Write> = match &options.output {
        Some(path) => Box::new(BufWriter::new(created(path, File::create(path))?)),
        None => Box::new(output::stdout().0),
    };
    write_for_others(options.format, &run, &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn write_for_others(format: Format, run: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    match format {
        Format::Run => {}
        Format::Json => report::export::json::write(out, run)?,
        Format::Csv => report::export::csv::write(out, run)?,
        Format::Folded => {
            let coverage = report::export::folded::write(out, run)?;
            output::tell(coverage);
        }
        Format::Svg => match report::export::svg::write(out, run) {
            Ok(coverage) => output::tell(coverage),
            Err(SvgError::Io(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::Failed(error.into())),
        },
    }
    Ok(())
}

/// Writes a run file. One that is there already is replaced at the end, when all is written.
fn write_run(store: &Sqlite, id: RunId, output: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = output else {
        if io::stdout().is_terminal() {
            let what = "a run file is compressed: give it a name with -o, or redirect the output";
            return Err(Failure::Usage(what.to_owned()));
        }
        return Ok(store.export(id, io::stdout().lock())?);
    };
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        let file = created(path, File::options().write(true).open(path))?;
        return Ok(store.export(id, file)?);
    }
    // A link stays one.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let temporary = tempfile::Builder::new()
        .prefix(".whylag-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder);
    let mut file = created(&path, temporary)?;
    store.export(id, file.as_file_mut())?;
    created(&path, file.persist(&path).map_err(|error| error.error))?;
    Ok(())
}

fn created<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(|error| Failure::Usage(format!("{error:#}")))
}

/// Refuses to write over the store, or the files that SQLite keeps with it.
fn must_not_be_store(path: &Path, store: Option<&Path>) -> Result<(), Failure> {
    let (Ok(output), Ok(store)) = (fs::metadata(path), location::locate(store)) else {
        return Ok(());
    };
    let is_it = ["", "-wal", "-shm"].iter().any(|suffix| {
        let mut file = store.clone().into_os_string();
        file.push(suffix);
        fs::metadata(file)
            .is_ok_and(|file| (file.dev(), file.ino()) == (output.dev(), output.ino()))
    });
    if is_it {
        let what = "is the store itself: give another file with -o";
        return Err(Failure::Usage(format!("{} {what}", path.display())));
    }
    Ok(())
}
