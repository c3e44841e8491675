//! `whylag doctor`: facts of the host and of a process that are known to cost latency.

mod recorder;
mod watch;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use explain::Side;
use inspect::live::{Process, bindings};
use inspect::{doctor, fingerprint};
use model::outside;
use model::{CheckResult, Checkup};

use crate::failure::Failure;
use crate::output;
use crate::stored::{self, RunName, StoreOptions};

/// Options of `doctor`.
#[derive(Args)]
#[command(after_help = "\
Nothing is changed, and no process is stopped. What cannot be read is listed; root
can read all. With --strict the exit status is 3 if something is bad.

Example:
  whylag doctor                        the host
  whylag doctor -p 1234                and a process
  whylag doctor --strict --why         for a script; why each fact matters
  whylag doctor -p 1234 --plt          its calls that are not bound yet
  whylag doctor -p 1234 --watch        each as it becomes bound
  whylag doctor --json > good.json     to be compared later, or with another host
  whylag doctor --diff good.json       what differs now
  whylag doctor --diff 7 8             in what surroundings two runs differ
  whylag doctor --diff 7 x.whylag      run 7 and the run of a file")]
pub struct Options {
    /// Look at a running process, too
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// List the calls of the process that are not bound yet, by library, and nothing else
    #[arg(long, requires = "pid", conflicts_with = "diff")]
    plt: bool,
    /// Print each unbound call as it becomes bound, until Ctrl-C or the end of the process
    #[arg(long, requires = "pid", conflicts_with_all = ["diff", "plt"])]
    watch: bool,
    /// Stop watching after this long, such as 10s
    #[arg(long, value_name = "D", requires = "watch",
          value_parser = model::units::parse_duration)]
    time: Option<u64>,
    /// What differs between two: files that --json wrote, numbers of runs, or files that 'export
    /// --format run' wrote; with one, between it and now
    #[arg(long, value_name = "A [B]", num_args = 1..=2)]
    diff: Vec<String>,
    /// Say why each check matters, also where it is good
    #[arg(long)]
    why: bool,
    /// Exit with 3 if something is bad; with --diff if something became bad
    #[arg(long)]
    strict: bool,
    /// Print one JSON object; with --watch one per line
    #[arg(long)]
    json: bool,
}

impl Options {
    /// It attaches to the kernel first, and gives up privileges afterwards.
    pub fn attaches(&self) -> bool {
        self.watch
    }
}

/// No checkup is longer, in bytes: one of this host has 80,000.
const LONGEST: u64 = 64 << 20;

/// Looks.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    match (&options.diff[..], options.pid) {
        ([first, second @ ..], _) => write_diff(options, store, first, second.first()),
        ([], Some(pid)) if options.watch => watch::run(pid, options.time, options.json),
        ([], Some(pid)) if options.plt => write_unbound(options, pid),
        ([], pid) => write_checkup(options, pid),
    }
}

/// All checks now.
pub fn checkup(pid: Option<u32>) -> Result<Checkup, Failure> {
    let mut checks = doctor::host();
    let mut facts = fingerprint::host();
    let mut unbound = Vec::new();
    if let Some(pid) = pid {
        let (of_process, of_libraries) = doctor::process(pid)?;
        checks.extend(of_process);
        unbound = of_libraries;
        facts.extend(fingerprint::process(pid));
    }
    checks.extend(recorder::checks());
    let checkup = Checkup {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        taken_unix_ns: clock::unix_ns(),
        pid,
        checks,
        facts,
        unbound,
    };
    // Names of processes, files and cgroups are in it.
    outside::shown(checkup).map_err(|error| Failure::Failed(error.into()))
}

fn write_checkup(options: &Options, pid: Option<u32>) -> Result<ExitCode, Failure> {
    let checkup = checkup(pid)?;
    let (mut out, style) = output::stdout();
    if options.json {
        write_json(&mut out, &checkup)?;
    } else {
        report::doctor::write(&mut out, &checkup, options.why, &style)?;
    }
    out.flush()?;
    Ok(strict(options, checkup.count(CheckResult::Bad) > 0))
}

fn write_unbound(options: &Options, pid: u32) -> Result<ExitCode, Failure> {
    let process = Process::open(pid)?;
    let unbound = doctor::unbound(&bindings(&process)?);
    let (mut out, style) = output::stdout();
    if options.json {
        write_json(&mut out, &unbound)?;
    } else {
        report::doctor::write_unbound(&mut out, &unbound, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn write_diff(
    options: &Options,
    store: &StoreOptions,
    first: &str,
    second: Option<&String>,
) -> Result<ExitCode, Failure> {
    let first = side(store, first)?;
    let second = match second {
        Some(second) => side(store, second)?,
        None => Side::of_checkup(checkup(options.pid)?, ""),
    };
    let diff = explain::compare_checkups(&first, &second);
    let (mut out, style) = output::stdout();
    if options.json {
        write_json(&mut out, &diff)?;
    } else {
        report::doctor::write_diff(&mut out, &diff, &style)?;
    }
    out.flush()?;
    Ok(strict(options, diff.differences.iter().any(|difference| difference.is_bad)))
}

/// A run by its number, a file that has one, or one that has a checkup.
fn side(store: &StoreOptions, name: &str) -> Result<Side, Failure> {
    let run = RunName::from(OsString::from(name));
    if matches!(run, RunName::Number(_)) || store::is_run_file(Path::new(name)) {
        let (_, run) = stored::load(store, Some(&run))?;
        return Ok(Side::of_run(&run));
    }
    let text = text_of(name).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let checkup: Checkup =
        serde_json::from_slice(&text).and_then(outside::shown).map_err(|error| {
            Failure::Usage(format!("{name} is nothing that 'whylag doctor --json' wrote: {error}"))
        })?;
    Ok(Side::of_checkup(checkup, name))
}

/// A regular file, or a pipe such as the shell's `<(ssh host whylag doctor --json)`.
fn text_of(name: &str) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(name)?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(io::Error::other("neither a file nor a pipe"));
    }
    let mut text = Vec::new();
    File::open(name)?.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        let mib = LONGEST >> 20;
        return Err(io::Error::other(format!("over {mib} MiB, which no checkup comes near")));
    }
    Ok(text)
}

fn strict(options: &Options, is_bad: bool) -> ExitCode {
    if options.strict && is_bad { ExitCode::from(3) } else { ExitCode::SUCCESS }
}

fn write_json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}
