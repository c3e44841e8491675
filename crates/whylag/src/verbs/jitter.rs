//! `whylag jitter`: how late timers are, the law of it, and why.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use jitter::judge::{Measured, judge};
use jitter::{Program, clock, control};
use model::{Batch, RunEnd, RunHeader, Target};
use signal_hook::consts::{SIGINT, SIGTERM};
use store::{Sqlite, Store, location};

use crate::failure::Failure;
use crate::output;

/// Options of `jitter`.
#[derive(Args)]
#[command(after_help = "\
A command after -- is judged instead of whylag's own timers: it prints a line
'intended_ns actual_ns' (CLOCK_MONOTONIC) for each of its ticks.

Example:
  whylag jitter --interval 20ms --over 40us --time 1min
  whylag jitter --source all --ladder 100us..100ms
  whylag jitter --time 10s -- ./timers")]
pub struct Options {
    /// Report ticks later than this
    #[arg(long, value_name = "D", value_parser = report::units::parse_duration)]
    over: Option<u64>,
    /// Stop after this long
    #[arg(long, value_name = "D", value_parser = report::units::parse_duration)]
    time: Option<u64>,
    /// The program to start and judge
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const LOOK: Duration = Duration::from_millis(50);

/// Measures and judges.
pub fn run(options: &Options, store: Option<&Path>) -> Result<ExitCode, Failure> {
    let path = location::locate(store)?;
    let mut store = Sqlite::open(&path)?;
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .context("cannot handle signals")?;
    }
    let words = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let header = RunHeader {
        started_unix_ns: clock::monotonic_ns() as i64 + clock::to_wall_ns(),
        started_ns: clock::monotonic_ns(),
        target: Target::Jitter(words),
        follow: false,
        threshold_ns: options.over.unwrap_or(0),
        sampled: false,
        recorder_pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut program = Program::start(&options.command, options.over)?;
    let id = store.begin(&header)?;
    let mut drift = clock::Drift::default();
    let started = Instant::now();
    loop {
        drift.read();
        if program.drain() {
            break;
        }
        if signal.load(Ordering::Relaxed) != 0 {
            break;
        }
        if options.time.is_some_and(|time| started.elapsed().as_nanos() >= u128::from(time)) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    let (series, program, status) = program.finish()?;
    let series = vec![series];
    let jitter = judge(Measured {
        controls: control::measure(&series),
        series,
        program: Some(program),
        drift,
        changed: Vec::new(),
        over_ns: options.over,
        conversion: None,
    });
    let ended_ns = clock::monotonic_ns();
    let batch = Batch { heartbeat_ns: ended_ns, jitter: Some(jitter), ..Batch::default() };
    store.append(id, &batch)?;
    let jitter = batch.jitter.unwrap_or_default();
    store.put_findings(id, &jitter.findings)?;
    let end = RunEnd { ended_ns, exit_status: status, reason: "the program ended".to_owned() };
    store.finish(id, &end)?;
    let (mut out, style) = output::stdout();
    if options.json {
        let value = serde_json::json!({"run": id, "jitter": jitter});
        serde_json::to_writer_pretty(&mut out, &value).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::jitter::write(&mut out, &jitter, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::from(status.map_or(0, |status| status as u8)))
}
