//! `whylag record`: watch threads, store a run, print where the time went and why.

mod size_cap;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use indicatif::ProgressBar;
use messages::Traced;
use model::outside::brief;
use model::{Batch, Capability, RunEnd, RunId};
use observe::{CgroupName, Recorder, Timers, Watch, WatchTarget};
use signal_hook::consts::SIGTERM;
use store::{Sqlite, Store, StoreError};

use self::size_cap::SizeCap;
use crate::failure::Failure;
use crate::stored::StoreOptions;
use crate::{output, signals, slow_messages};

/// Options of `record`.
#[derive(Args)]
#[command(
    group(ArgGroup::new("target").required(true)
        .args(["pid", "tid", "unit", "container", "cgroup", "all", "command"])),
    override_usage = "\
whylag record [OPTIONS] -- CMD...
       whylag record [OPTIONS] <-p PID|-t TID|-u UNIT|--container ID|--cgroup PATH|-a>",
    after_help = "\
The run ends with the command or the target, after --time, or with Ctrl-C.
The command's output is left alone, its exit status becomes whylag's.

Example:
  whylag record -- ./server --port 8080
  whylag record -p 1234 --follow --time 10s
  whylag record -u nginx.service --time 10s
  whylag record --container 4f5e6a7b8c9d --time 10s
  whylag record --cgroup /system.slice/docker.service --time 10s
  whylag record -a --time 5s --budget 2%"
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
    /// Stop keeping single outliers, events and messages when the run takes this much in the store,
    /// such as 500MB; sums and histograms go on
    #[arg(long, value_name = "SIZE", default_value = "2GiB",
          value_parser = model::units::parse_size)]
    max_size: u64,
    /// Store what looks like a secret in the command's arguments, too, instead of ***
    #[arg(long, requires = "command")]
    keep_command_line: bool,
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
/// Characters of the command in the first line.
const TARGET: usize = 160;
/// Slow messages in the report at the end.
const MESSAGES: usize = 3;
/// How often data is stored: what a killed recorder loses at most.
const STEP: Duration = Duration::from_secs(1);

/// Records.
pub fn run(options: &Options, store: &StoreOptions, started: Instant) -> Result<ExitCode, Failure> {
    let mut store = store.open_to_write()?;
    let recorder = Recorder::start(&watch(options), started)?;
    let signal = signals::asking_for_the_end()?;
    let id = store.begin(recorder.header())?;
    output::tell(format!(
        "recording {} as run {id}; Ctrl-C ends it{}",
        brief(&recorder.header().target.to_string(), TARGET),
        left_out(options, &recorder)
    ));
    tell_what_is_off(recorder.capabilities());
    let mut traced = Traced::new(recorder.header());
    for process in options.pid.into_iter().chain(recorder.child_pid()) {
        traced.add(process);
    }
    let mut session = Session {
        recorder,
        traced,
        store,
        id,
        size_cap: SizeCap::new(options.max_size),
        progress: progress(options),
        outliers: 0,
        started: Instant::now(),
    };
    let stop = session.watch_until_end(options, &signal)?;
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
            output::tell(format!(
                "thread states are sampled from /proc, nothing is recorded: {because}"
            ));
        } else {
            output::tell(format!("{} not recorded: {because}", parts.join(", ")));
        }
    }
}

fn watch(options: &Options) -> Watch {
    Watch {
        target: target(options),
        follow: options.follow,
        threshold_ns: options.threshold,
        budget_percent: options.budget,
        timers: Timers::Off,
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
    store_failed: Option<StoreError>,
}

struct Session {
    recorder: Recorder,
    traced: Traced,
    store: Sqlite,
    id: RunId,
    size_cap: SizeCap,
    progress: ProgressBar,
    outliers: u64,
    started: Instant,
}

impl Session {
    fn watch_until_end(
        &mut self,
        options: &Options,
        signal: &AtomicUsize,
    ) -> Result<Stop, Failure> {
        let stop = |reason: &str| Stop {
            reason: reason.to_owned(),
            exit_status: None,
            store_failed: None,
        };
        let mut stored = Instant::now();
        loop {
            if let Some((reason, exit_status)) = self.recorder.ended()? {
                return Ok(Stop { reason, exit_status, store_failed: None });
            }
            match signal.load(Ordering::Relaxed) {
                0 => {}
                number => return Ok(stop(signals::name(number))),
            }
            let length = self.started.elapsed().as_nanos();
            if options.time.is_some_and(|time| length >= u128::from(time)) {
                return Ok(stop("--time was over"));
            }
            let also_keep = |ns| self.recorder.also_keep(ns);
            say(self.traced.look(clock::monotonic_ns(), also_keep));
            let batch = if stored.elapsed() >= STEP {
                stored = Instant::now();
                Some(self.recorder.batch()?)
            } else {
                self.recorder.early_outliers()
            };
            let Some(mut batch) = batch else {
                std::thread::sleep(LOOK);
                continue;
            };
            self.traced.complete(&mut batch);
            self.tell(&batch);
            if let Err(error) = append(&mut self.store, &mut self.size_cap, self.id, &mut batch) {
                return Ok(Stop { store_failed: Some(error), ..stop("the store failed") });
            }
        }
    }

    fn tell(&mut self, batch: &Batch) {
        self.outliers += batch.outliers.len() as u64;
        self.progress.set_message(format!(
            "recording run {}: {} s, {} outliers; Ctrl-C ends it",
            self.id,
            self.started.elapsed().as_secs(),
            self.outliers
        ));
        self.progress.tick();
    }

    /// Stores the rest, prints the report, and waits for a command that still runs.
    fn finish(mut self, stop: Stop, signal: &AtomicUsize) -> Result<ExitCode, Failure> {
        let child = self.recorder.child_pid().filter(|_| stop.exit_status.is_none());
        let ended_ns = clock::monotonic_ns();
        let waiter = child.map(|pid| forward_and_wait(pid, signal));
        self.progress.finish_and_clear();
        let mut failed = stop.store_failed;
        self.traced.finish(ended_ns);
        for mut batch in self.recorder.finish()? {
            self.traced.complete(&mut batch);
            if failed.is_none() {
                failed = append(&mut self.store, &mut self.size_cap, self.id, &mut batch).err();
            }
        }
        if failed.is_none() {
            say(self.traced.remove_abandoned());
        }
        let status = stop.exit_status.or_else(|| waiter.and_then(|wait| wait.join().ok()));
        if let Some(error) = failed {
            return Err(Failure::Failed(anyhow::Error::from(error).context(format!(
                "recording stopped; what was stored of run {} is intact",
                self.id
            ))));
        }
        let end = RunEnd { ended_ns, exit_status: status, reason: stop.reason };
        self.store.finish(self.id, &end)?;
        report(&mut self.store, self.id)?;
        Ok(ExitCode::from(status.map_or(0, |status| status as u8)))
    }
}

fn append(
    store: &mut Sqlite,
    size_cap: &mut SizeCap,
    id: RunId,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    if let Some(line) = size_cap.trim(batch, store.size_of(id)?) {
        output::tell(line);
    }
    store.append(id, batch)
}

/// The command goes on without being recorded; a SIGTERM that we got is meant for it too, while
/// Ctrl-C has reached it from the terminal. Gives its exit status as a shell reports it.
fn forward_and_wait(pid: u32, signal: &AtomicUsize) -> std::thread::JoinHandle<i32> {
    let pid = rustix::process::Pid::from_raw(pid as i32);
    if signal.load(Ordering::Relaxed) == SIGTERM as usize
        && let Some(pid) = pid
    {
        // It may have ended by itself just now.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    std::thread::spawn(move || {
        let waited = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty());
        match waited {
            Ok(Some((_, status))) => status
                .exit_status()
                .unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0)),
            _ => 1,
        }
    })
}

fn say(lines: Vec<String>) {
    lines.iter().for_each(output::tell);
}

/// Explains the run, keeps the findings, and prints both.
fn report(store: &mut Sqlite, id: RunId) -> Result<(), Failure> {
    let run = store.load(id)?;
    let explanation = explain::explain(&run);
    store.put_findings(id, &explanation.findings)?;
    let (mut out, style) = output::stderr();
    writeln!(out)?;
    report::accounts::write_summary(&mut out, &run, &style)?;
    writeln!(out)?;
    report::explanation::write(&mut out, &explanation, &run, &style)?;
    if !run.messages.is_empty() {
        let slow = slow_messages::load(store, &run)?;
        writeln!(out)?;
        report::messages::write(&mut out, &run, &id.to_string(), &slow, MESSAGES, &style)?;
    }
    writeln!(out, "\nRun {id} is stored: 'whylag show {id}' has the rest.")?;
    out.flush()?;
    Ok(())
}
