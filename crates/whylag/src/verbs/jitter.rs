//! `whylag jitter`: how late timers are, by which law, and why.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use indicatif::ProgressBar;
use jitter::plan::{self, Setting, Step};
use jitter::{Series, Started, control, drift, sources};
use model::{Batch, Conversion, Jitter, JitterProgram, Outlier, RunEnd, RunHeader, Target};
use store::Store;

mod watched;

use self::watched::Watched;
use crate::failure::Failure;
use crate::keeper::Keeper;
use crate::selection::labels;
use crate::signals::Asked;
use crate::stored::StoreOptions;
use crate::{output, stored};

/// Options of `jitter`.
#[derive(Args)]
#[command(after_help = "\
Sources: clock_nanosleep, timerfd, posix-timer (a signal), posix-timer-thread,
epoll, poll, condvar, spin (a busy loop), all.

A command after -- is judged instead: it prints a line 'intended_ns actual_ns'
(CLOCK_MONOTONIC) for each of its ticks; other lines are counted.

Nothing is changed unless asked for with --cpu or --fifo: no priority, no memory
lock, no /dev/cpu_dma_latency.

Example:
  whylag jitter --over 40us --every 20s --time 1min
  whylag jitter --source all --ladder 100us..100ms
  whylag jitter --time 10s -- ./timers
  whylag jitter --cpu 3 --fifo 80 --interval 1ms --time 10s
  whylag jitter --factor 10ns --true 10.04ns --bound 1ppm")]
pub struct Options {
    /// The kind of timer [default: clock_nanosleep]
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    source: Option<String>,
    /// Time from tick to tick [default: 20ms; 100us for spin]
    #[arg(long, value_name = "D", value_parser = model::units::parse_duration,
          conflicts_with_all = ["ladder", "command"])]
    interval: Option<u64>,
    /// Several intervals, 1 and 3 of each decade, one after the other
    #[arg(long, value_name = "D..D", value_parser = ladder, conflicts_with = "command")]
    ladder: Option<Ladder>,
    /// Count ticks that are later than this, and look for a beat in them
    #[arg(long, value_name = "D", value_parser = model::units::parse_duration)]
    over: Option<u64>,
    /// Print interim results this often
    #[arg(long, value_name = "D", value_parser = model::units::parse_duration)]
    every: Option<u64>,
    /// How long for each source and interval [default: 10s, or 2s each of several]; a command: until
    /// it ends
    #[arg(long, value_name = "D", value_parser = model::units::parse_duration)]
    time: Option<u64>,
    /// Bind the measuring thread to this CPU
    #[arg(long, value_name = "N", conflicts_with = "command")]
    cpu: Option<usize>,
    /// Give the measuring thread SCHED_FIFO with this priority
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(i32).range(1..=99),
          conflicts_with = "command")]
    fifo: Option<i32>,
    /// Judge a conversion with so many nanoseconds per tick; without a command only compute
    #[arg(long, value_name = "NS", value_parser = factor,
          conflicts_with_all = ["source", "interval", "ladder", "cpu", "fifo"])]
    factor: Option<f64>,
    /// What --factor should be
    #[arg(long = "true", value_name = "NS", value_parser = factor, requires = "factor")]
    truth: Option<f64>,
    /// What --factor should be, as the exact frequency of the counter
    #[arg(long, value_name = "HZ", value_parser = hertz, requires = "factor",
          conflicts_with = "truth")]
    clock_hz: Option<f64>,
    /// The largest error of --factor that is acceptable
    #[arg(long, value_name = "PPM", value_parser = ppm, default_value = "1ppm")]
    bound: f64,
    /// Do not record in the kernel why ticks are late
    #[arg(long)]
    no_record: bool,
    /// What to call the run, such as build=42; may be given several times. 'whylag runs --label'
    /// finds it again
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = stored::label)]
    labels: Vec<(String, String)>,
    /// Name of the set that the run belongs to, such as before: 'prove' takes the name for all of its
    /// runs
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    set: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program to start and judge
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The two ends of `--ladder`.
#[derive(Clone, Copy)]
struct Ladder(u64, u64);

fn ladder(text: &str) -> Result<Ladder, String> {
    let ends = text.split_once("..").ok_or("write a ladder as 100us..100ms")?;
    let end = |text| model::units::parse_duration(text).map_err(|error| error.to_string());
    Ok(Ladder(end(ends.0)?, end(ends.1)?))
}

/// A factor may be a part of a nanosecond: `10ns`, `10.04ns`, `10.04`.
fn factor(text: &str) -> Result<f64, String> {
    positive(text.trim().strip_suffix("ns").unwrap_or(text))
        .ok_or_else(|| format!("'{text}' is no factor: write nanoseconds per tick, as 10.04ns"))
}

fn hertz(text: &str) -> Result<f64, String> {
    positive(text.trim().strip_suffix("Hz").unwrap_or(text))
        .ok_or_else(|| format!("'{text}' is no frequency: write Hz, as 99601594"))
}

fn ppm(text: &str) -> Result<f64, String> {
    positive(text.trim().strip_suffix("ppm").unwrap_or(text))
        .ok_or_else(|| format!("'{text}' is no bound: write parts per million, as 1ppm"))
}

fn positive(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| *value > 0.0 && value.is_finite())
}

/// How often ticks, the clock and signals are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// A command is started to be judged: its output is waited for.
const LOOK_AT_COMMAND: Duration = Duration::from_millis(20);

/// Measures, stores what was measured, and has the stored run judged.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let conversion = options.factor.map(|factor| {
        let truth = options.truth.or(options.clock_hz.map(|hertz| 1e9 / hertz));
        explain::conversion(factor, truth, options.bound)
    });
    if let Some(conversion) = &conversion
        && options.command.is_empty()
    {
        return tell_conversion(conversion, options);
    }
    let plan = plan(options)?;
    let store = store.open_to_write()?;
    let labels = labels(&options.labels, options.set.as_deref());
    let header = RunHeader { labels, ..stored::header(Target::Jitter(words())) };
    let (watched, recording) = Watched::start(options, plan)?;
    let signal = Asked::listen()?;
    let mut keeper = Keeper::begin(store, &header);
    let number = keeper.number();
    let progress = match options.command.is_empty() && std::io::stderr().is_terminal() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    };
    let mut session =
        Session { watched, recording, drift: drift::Drift::default(), progress, number };
    let reason = session.watch_until_end(options, &signal)?;
    session.progress.finish_and_clear();
    let ended_ns = clock::monotonic_ns();
    let measured = session.conclude(options, conversion)?;
    let exit_status = measured.exit_status;
    let batch = Batch {
        heartbeat_ns: ended_ns,
        facts: facts(options),
        jitter: Some(measured.jitter),
        outliers: measured.intervals,
        ..Batch::default()
    };
    keeper.append(batch);
    let mut kept = keeper.finish(&RunEnd { ended_ns, exit_status, reason: reason.to_owned() })?;
    if kept.is_kept() {
        signal.nothing_can_be_lost();
    }
    let run = kept.store.load(kept.id)?;
    let written = match explain::timers(&run) {
        Some(judged) => {
            kept.put_findings(&judged.jitter.findings);
            kept.put_figures(&explain::figures(&run, &judged.explanation));
            write(judged.jitter, options)
        }
        None => Ok(()),
    };
    kept.tell_where("has it again");
    written?;
    Ok(kept.exit_code(exit_status))
}

/// Without a command: what is to be measured.
fn plan(options: &Options) -> Result<Vec<Step>, Failure> {
    let named = sources::named(options.source.as_deref().unwrap_or("clock_nanosleep"))?;
    let intervals = match (options.interval, options.ladder) {
        (Some(interval), _) => vec![interval],
        (_, Some(Ladder(low, high))) => plan::ladder(low, high)?,
        _ => Vec::new(),
    };
    Ok(plan::steps(&named, &intervals, options.time)?)
}

fn setting(options: &Options) -> Setting {
    Setting { cpu: options.cpu, fifo: options.fifo }
}

/// The command line after the verb, without what the run is called: runs of the same are compared,
/// whatever they are called.
fn words() -> Vec<String> {
    let mut all = std::env::args_os().skip_while(|word| word != "jitter").skip(1);
    let mut words: Vec<OsString> = Vec::new();
    while let Some(word) = all.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            words.push(word);
            words.extend(all);
            break;
        }
        if text == "--label" || text == "--set" {
            all.next();
        } else if !text.starts_with("--label=") && !text.starts_with("--set=") {
            words.push(word);
        }
    }
    inspect::command_line::to_store(&words, false)
}

fn facts(options: &Options) -> Vec<model::Fact> {
    let mut facts = inspect::fingerprint::host();
    if let Some(program) = options.command.first() {
        let program = Path::new(program);
        facts.extend(inspect::fingerprint::command(program, std::env::vars_os()));
    }
    facts
}

/// What was measured, and how the command ended.
struct Measured {
    jitter: Jitter,
    /// What was recorded of the latest ticks.
    intervals: Vec<Outlier>,
    exit_status: Option<i32>,
}

struct Session {
    watched: Watched,
    recording: Started,
    drift: drift::Drift,
    progress: ProgressBar,
    number: String,
}

impl Session {
    fn watch_until_end(
        &mut self,
        options: &Options,
        signal: &Asked,
    ) -> Result<&'static str, Failure> {
        let started = Instant::now();
        let mut reported = started;
        let is_command = !options.command.is_empty();
        loop {
            self.drift.read();
            if self.watched.drain()? {
                return Ok(if is_command { "the program ended" } else { "all ticks have come" });
            }
            if let Some(reason) = signal.reason() {
                return Ok(reason);
            }
            let over = |time: u64| started.elapsed().as_nanos() >= u128::from(time);
            if is_command && options.time.is_some_and(over) {
                return Ok("--time was over");
            }
            if let Some(every) = options.every
                && reported.elapsed().as_nanos() >= u128::from(every)
            {
                reported = Instant::now();
                self.tell_recent(started.elapsed(), options);
            }
            if let Ok(recording) = &mut self.recording {
                recording.take(self.watched.series());
            }
            self.show_progress();
            std::thread::sleep(if is_command { LOOK_AT_COMMAND } else { LOOK });
        }
    }

    fn show_progress(&mut self) {
        let run = &self.number;
        if let Some(series) = self.watched.newest() {
            let line = report::jitter::in_one_line(series.summary());
            self.progress.set_message(format!("run {run}: {line}; Ctrl-C ends it"));
            self.progress.tick();
        }
    }

    /// The line of `--every`; with --json it goes to standard error.
    fn tell_recent(&mut self, at: Duration, options: &Options) {
        let Some(series) = self.watched.newest() else { return };
        let recent = series.take_recent();
        let line = report::jitter::recent(&recent.late, recent.early, recent.over, options.over);
        let line = format!(
            "{:>6.1} s  {} {}  {line}",
            at.as_secs_f64(),
            series.summary().source,
            model::units::duration(series.summary().interval_ns)
        );
        self.progress.suspend(|| {
            if options.json {
                return output::tell_plainly(&line);
            }
            // That nobody reads it is said at the end, when all is measured and stored.
            let (mut out, _) = output::stdout();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        });
    }

    /// Ends what is watched.
    fn conclude(
        self,
        options: &Options,
        conversion: Option<Conversion>,
    ) -> Result<Measured, Failure> {
        let setting = setting(options);
        let mut drift = self.drift;
        let mut program: Option<JitterProgram> = None;
        let (mut exit_status, mut lost) = (None, 0);
        let series = match self.watched {
            Watched::Timers(timers) => {
                let (series, read_with_ticks, not_taken) = timers.finish()?;
                (drift, lost) = (read_with_ticks, not_taken);
                series
            }
            Watched::Program(running) => {
                let (series, facts, status) = running.finish()?;
                (program, exit_status) = (Some(facts), status);
                vec![series]
            }
        };
        let (intervals, unrecorded) = match self.recording {
            Ok(recording) => recording.finish(&series),
            Err(because) => (Vec::new(), Some(because)),
        };
        let jitter = Jitter {
            program,
            changed: setting.changed(),
            over_ns: options.over,
            jiffy_ns: clock::jiffy_ns(),
            controls: control::measure(&series, setting),
            series: series.into_iter().map(Series::measured).collect(),
            drift_ppm: drift.estimate(),
            conversion,
            notes: notes(lost, unrecorded),
            ..Jitter::default()
        };
        Ok(Measured { jitter, intervals, exit_status })
    }
}

/// What could not be measured.
fn notes(lost: u64, unrecorded: Option<String>) -> Vec<String> {
    let lost = (lost > 0).then(|| format!("{lost} ticks came faster than they could be counted"));
    let unrecorded =
        unrecorded.map(|because| format!("not recorded why single ticks were late: {because}"));
    lost.into_iter().chain(unrecorded).collect()
}

fn write(jitter: Jitter, options: &Options) -> Result<(), Failure> {
    let (mut out, style) = output::stdout();
    if options.json {
        report::jitter::write_json(&mut out, jitter)?;
    } else {
        report::jitter::write(&mut out, &jitter, &style)?;
    }
    Ok(out.flush()?)
}

fn tell_conversion(conversion: &Conversion, options: &Options) -> Result<ExitCode, Failure> {
    let (mut out, style) = output::stdout();
    if options.json {
        serde_json::to_writer_pretty(&mut out, conversion).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::jitter::write_conversion(&mut out, conversion, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
