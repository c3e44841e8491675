//! `whylag record`: watch threads, store a run, print where the time went and why.

mod size_cap;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use indicatif::ProgressBar;
use messages::Traced;
use model::outside::brief;
use model::{Batch, Capability, RunEnd, RunHeader};
use observe::{CgroupName, Recorder, SlowRequests, Timers, Watch, WatchTarget};
use store::Store;

use self::size_cap::SizeCap;
use crate::failure::Failure;
use crate::keeper::{Keeper, Kept};
use crate::output::tell;
use crate::selection::SET;
use crate::signals::Asked;
use crate::stored::{StoreOptions, label};
use crate::{output, signals};

/// Options of `record`.
#[derive(Args)]
#[command(
    group(ArgGroup::new("target").required(true)
        .args(["pid", "tid", "unit", "container", "cgroup", "all", "command"])),
    override_usage = "\
whylag record [OPTIONS] -- CMD...
       whylag record [OPTIONS] <-p PID|-t TID|-u UNIT|--container ID|--cgroup PATH|-a>",
    after_help = "\
The run ends with the command or the target, after --time, or with Ctrl-C,
SIGTERM or SIGHUP; the last two are passed on to the command.
The command's output is left alone, its exit status becomes whylag's.

Example:
  whylag record -- ./server --port 8080
  whylag record -p 1234 --follow --time 10s
  whylag record -u nginx.service --time 10s
  whylag record --container 4f5e6a7b8c9d --time 10s
  whylag record --cgroup /system.slice/docker.service --time 10s
  whylag record -a --time 5s --budget 2%
  whylag record -p 1234 --time 1m --cheap
  whylag record --set before -- ./load       then: whylag compare before after"
)]
pub struct Options {
    /// Watch all threads of a running process, new ones too
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Watch one thread
    #[arg(short, long, value_name = "TID", value_parser = clap::value_parser!(u32).range(1..))]
    tid: Option<u32>,
    /// Watch all processes of a systemd unit, later ones too
    #[arg(short, long, value_name = "UNIT", value_parser = NonEmptyStringValueParser::new())]
    unit: Option<String>,
    /// Watch all processes of a container of Docker, Podman, containerd or Kubernetes, by its id or
    /// a part of it
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    container: Option<String>,
    /// Watch all processes of a cgroup and of those below it: a directory under /sys/fs/cgroup, or
    /// the path of the cgroup
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    cgroup: Option<String>,
    /// Watch every thread of the host, in a container those of the container
    #[arg(short, long)]
    all: bool,
    /// The command to start and watch
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    /// Watch child processes too, also those that run already
    #[arg(long)]
    follow: bool,
    /// Stop recording after this long, such as 10s
    #[arg(long, value_name = "D", value_parser = model::units::parse_duration)]
    time: Option<u64>,
    /// Keep every system call, sleep and run-queue delay whole that is at least this long
    #[arg(long, value_name = "D", default_value = "1ms",
          value_parser = model::units::parse_duration)]
    threshold: u64,
    /// Keep requests and calls at sockets whole that take at least this long [default: the slowest
    /// hundredth of each port, from --threshold on]
    #[arg(long, value_name = "D", value_parser = model::units::parse_duration)]
    slower_than: Option<u64>,
    /// Stop keeping single outliers, events and messages when the run takes this much in the store,
    /// such as 500MB; sums and histograms go on
    #[arg(long, value_name = "SIZE", default_value = "2GiB",
          value_parser = model::units::parse_size)]
    max_size: u64,
    /// What to call the run, such as build=42; may be given several times. 'whylag runs --label'
    /// finds it again
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Name of the set that the run belongs to, such as before: 'prove' and 'compare' take the name
    /// for all of its runs
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    set: Option<String>,
    /// Store what looks like a secret in the command's arguments, too, instead of ***
    #[arg(long, requires = "command")]
    keep_command_line: bool,
    /// Record no system calls and no requests, and take a tenth of the samples: these cost a busy
    /// server most. Time on a CPU is not divided into user and kernel, and causes that need them are
    /// not looked at
    #[arg(long, conflicts_with = "slower_than")]
    cheap: bool,
    /// Shed the most expensive probes when recording costs more than this share of all CPUs, such as 2%
    #[arg(long, value_name = "PCT", value_parser = percent)]
    budget: Option<f64>,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("a budget is a percentage above 0 and up to 100, such as 2%".to_owned()),
    }
}

/// How often the target, the clock and signals are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A command may go on for so long after the recording's end without a word.
const SILENCE: Duration = Duration::from_secs(1);
/// Characters of the command in the first line.
const TARGET: usize = 160;
/// Slow messages in the report at the end.
const MESSAGES: usize = 3;
/// How often data is stored: what a killed recorder loses at most.
const STEP: Duration = Duration::from_secs(1);

/// Records.
pub fn run(options: &Options, store: &StoreOptions, started: Instant) -> Result<ExitCode, Failure> {
    let store = store.open_to_write()?;
    let recorder = Recorder::start(&watch(options), started)?;
    let signal = Asked::listen()?;
    let set = options.set.iter().map(|name| (SET.to_owned(), name.clone()));
    let labels = options.labels.iter().cloned().chain(set).collect();
    let keeper = Keeper::begin(store, &RunHeader { labels, ..recorder.header().clone() });
    tell(format_args!(
        "recording {} as run {}; Ctrl-C ends it{}",
        brief(&recorder.header().target.to_string(), TARGET),
        keeper.number(),
        left_out(options, &recorder)
    ));
    tell_what_is_off(recorder.capabilities());
    let mut traced = Traced::new(recorder.header(), options.slower_than);
    for process in options.pid.into_iter().chain(recorder.child_pid()) {
        traced.add(process);
    }
    let mut session = Session {
        recorder,
        traced,
        keeper,
        size_cap: SizeCap::new(options.max_size),
        progress: progress(options),
        outliers: 0,
        started: Instant::now(),
    };
    let stop = session.watch_until_end(options, &signal);
    session.finish(stop, &signal)
}

/// What might be expected to be watched and is not.
fn left_out(options: &Options, recorder: &Recorder) -> String {
    if options.all && recorder.is_in_pid_namespace() {
        return "; processes outside of whylag's PID namespace are not watched".to_owned();
    }
    let Some(pid) = options.pid.filter(|_| !options.follow) else { return String::new() };
    match observe::children_of(pid).len() {
        0 => String::new(),
        1 => "; 1 running child is not watched: --follow takes it".to_owned(),
        count => format!("; {count} running children are not watched: --follow takes them"),
    }
}

/// One line per reason.
fn tell_what_is_off(capabilities: &[Capability]) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for part in capabilities.iter().filter(|part| !part.on) {
        match reasons.iter_mut().find(|(because, _)| *because == part.because) {
            Some((_, parts)) => parts.push(part.part.name()),
            None => reasons.push((&part.because, vec![part.part.name()])),
        }
    }
    for (because, parts) in reasons {
        if parts.len() == capabilities.len() {
            tell(format_args!(
                "thread states are sampled from /proc, nothing is recorded: {because}"
            ));
        } else {
            tell(format_args!("{} not recorded: {because}", parts.join(", ")));
        }
    }
}

fn watch(options: &Options) -> Watch {
    Watch {
        target: target(options),
        follow: options.follow,
        threshold_ns: options.threshold,
        budget_percent: options.budget,
        cheap: options.cheap,
        timers: Timers::Off,
        requests: options.slower_than.map_or(SlowRequests::Slowest, SlowRequests::From),
        keep_secrets: options.keep_command_line,
        pipe_stdout: false,
    }
}

/// The only one that was given.
fn target(options: &Options) -> WatchTarget {
    if let Some(pid) = options.pid {
        return WatchTarget::Process(pid);
    }
    if let Some(tid) = options.tid {
        return WatchTarget::Thread(tid);
    }
    if options.all {
        return WatchTarget::Host;
    }
    let unit = options.unit.clone().map(CgroupName::Unit);
    let container = || options.container.clone().map(CgroupName::Container);
    let path = || options.cgroup.clone().map(CgroupName::Path);
    match unit.or_else(container).or_else(path) {
        Some(name) => WatchTarget::Cgroup(name),
        None => WatchTarget::Command(options.command.clone()),
    }
}

/// A line that moves, unless a command owns the terminal.
fn progress(options: &Options) -> ProgressBar {
    if options.command.is_empty() && std::io::stderr().is_terminal() {
        ProgressBar::new_spinner()
    } else {
        ProgressBar::hidden()
    }
}

/// Why recording stops.
struct Stop {
    reason: String,
    exit_status: Option<i32>,
    /// What the recorder could not do.
    failed: Option<observe::Error>,
}

impl Stop {
    fn because(reason: impl Into<String>) -> Stop {
        Stop { reason: reason.into(), exit_status: None, failed: None }
    }
}

impl From<observe::Error> for Stop {
    fn from(error: observe::Error) -> Stop {
        Stop { failed: Some(error), ..Stop::because("the recorder failed") }
    }
}

struct Session {
    recorder: Recorder,
    traced: Traced,
    keeper: Keeper,
    size_cap: SizeCap,
    progress: ProgressBar,
    outliers: u64,
    started: Instant,
}

impl Session {
    fn watch_until_end(&mut self, options: &Options, signal: &Asked) -> Stop {
        let mut stored = Instant::now();
        loop {
            match self.look(options, signal, &mut stored) {
                Ok(None) => {}
                Ok(Some(stop)) => return stop,
                Err(error) => return error.into(),
            }
        }
    }

    /// Takes what there is, or waits for a moment; the reason if it is time to stop.
    fn look(
        &mut self,
        options: &Options,
        signal: &Asked,
        stored: &mut Instant,
    ) -> Result<Option<Stop>, observe::Error> {
        if let Some((reason, exit_status)) = self.recorder.ended()? {
            return Ok(Some(Stop { exit_status, ..Stop::because(reason) }));
        }
        if let Some(reason) = signal.reason() {
            return Ok(Some(Stop::because(reason)));
        }
        let length = self.started.elapsed().as_nanos();
        if options.time.is_some_and(|time| length >= u128::from(time)) {
            return Ok(Some(Stop::because("--time was over")));
        }
        let also_keep = |ns| self.recorder.also_keep(ns);
        say(self.traced.look(clock::monotonic_ns(), also_keep));
        let batch = if stored.elapsed() >= STEP {
            *stored = Instant::now();
            Some(self.recorder.batch()?)
        } else {
            self.recorder.early_outliers()
        };
        match batch {
            Some(batch) => {
                self.show(&batch);
                keep(batch, &mut self.traced, &mut self.size_cap, &mut self.keeper);
            }
            None => std::thread::sleep(LOOK),
        }
        Ok(None)
    }

    fn show(&mut self, batch: &Batch) {
        self.outliers += batch.outliers.len() as u64;
        self.progress.set_message(format!(
            "recording run {}: {} s, {} outliers; Ctrl-C ends it",
            self.keeper.number(),
            self.started.elapsed().as_secs(),
            self.outliers
        ));
        self.progress.tick();
    }

    /// Reads what is left, passes a signal on to a command only then, stores the rest, waits for
    /// the command, and prints the report.
    fn finish(mut self, stop: Stop, signal: &Asked) -> Result<ExitCode, Failure> {
        let mut failed = stop.failed;
        let stopped = self.recorder.stop();
        let child = self.recorder.child_pid().filter(|_| stop.exit_status.is_none());
        let waiter = child.map(|pid| signals::pass_on_until_end(pid, signal));
        self.progress.finish_and_clear();
        let ended_ns = stopped.unwrap_or_else(|error| {
            failed.get_or_insert(error);
            clock::monotonic_ns()
        });
        self.keeper.ends();
        self.traced.finish(ended_ns);
        let finished = self.recorder.finish(|batch| {
            keep(batch, &mut self.traced, &mut self.size_cap, &mut self.keeper);
        });
        if let Err(error) = finished {
            failed.get_or_insert(error);
        }
        let status = stop
            .exit_status
            .or_else(|| child.zip(waiter).and_then(|(pid, waiter)| exit_status(pid, waiter)));
        let end = RunEnd { ended_ns, exit_status: status, reason: stop.reason };
        let mut kept = self.keeper.finish(&end)?;
        if kept.is_kept() {
            signal.nothing_can_be_lost();
        }
        let reported = report(&mut kept);
        kept.tell_where("has the rest");
        if kept.is_kept() {
            say(self.traced.remove_abandoned());
        }
        reported?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        Ok(kept.exit_code(status))
    }
}

/// Of a command that was recorded for a part of its life: waits for it to end, and says so.
fn exit_status(pid: u32, waiter: JoinHandle<i32>) -> Option<i32> {
    let waiting = Instant::now();
    while !waiter.is_finished() && waiting.elapsed() < SILENCE {
        std::thread::sleep(LOOK);
    }
    if !waiter.is_finished() {
        tell(format_args!(
            "recording has ended; the report comes when the command (pid {pid}) has ended too: \
             Ctrl-C or 'kill {pid}' ends it"
        ));
    }
    waiter.join().ok()
}

/// Adds what the programs traced themselves, and stores what the run has room for.
fn keep(mut batch: Batch, traced: &mut Traced, size_cap: &mut SizeCap, keeper: &mut Keeper) {
    traced.complete(&mut batch);
    if let Some(line) = size_cap.trim(&mut batch, keeper.stored_bytes()) {
        tell(line);
    }
    keeper.append(batch);
}

fn say(lines: Vec<String>) {
    lines.iter().for_each(tell);
}

/// Explains the run, keeps the findings, and prints both.
fn report(kept: &mut Kept) -> Result<(), Failure> {
    let id = kept.id;
    let run = kept.store.load(id)?;
    let explanation = explain::explain(&run);
    kept.put_findings(&explanation.findings);
    kept.put_figures(&explain::figures(&run, &explanation));
    let (mut out, style) = output::stderr();
    writeln!(out)?;
    report::accounts::write_summary(&mut out, &run, &style)?;
    writeln!(out)?;
    report::explanation::write(&mut out, &explanation, &run, &style)?;
    if !run.messages.is_empty() {
        let slow = explain::slow_messages(&run);
        writeln!(out)?;
        report::messages::write(&mut out, &run, &id.to_string(), &slow, MESSAGES, &style)?;
    }
    writeln!(out)?;
    Ok(out.flush()?)
}
