//! `whylag record`: watch threads, store a run, print where the time went and why.

mod session;
mod size_cap;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use messages::Traced;
use model::outside::brief;
use model::{Capability, RunHeader};
use observe::{CgroupName, Detail, Recorder, SlowRequests, Timers, Watch, WatchTarget};

use self::session::Session;
use crate::failure::Failure;
use crate::keeper::Keeper;
use crate::output::tell;
use crate::selection::labels;
use crate::signals::Asked;
use crate::stored::{StoreOptions, label};

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
After 2 seconds system calls are recorded only as long as that takes no more
than 4 % of a CPU (2 %, if it is never idle; about 100,000 a second, and 50,000),
and softirqs as long as it takes 1 %. Then calls are sampled, as with --cheap.

Example:
  whylag record -- ./server --port 8080
  whylag record -p 1234 --follow --time 10s
  whylag record -u nginx.service --time 10s
  whylag record --container 4f5e6a7b8c9d --time 10s
  whylag record --cgroup /system.slice/docker.service --time 10s
  whylag record -a --time 5s --budget 2%
  whylag record -p 1234 --time 1min --cheap
  whylag record -p 1234 --time 1min --slower-than 20ms --label build=42 --max-size 500MB
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
    /// the beginning of it
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
    /// Store each system call, sleep and run-queue delay of at least this length individually, with
    /// stacks; shorter ones are in sums and histograms
    #[arg(long, value_name = "D", default_value = "1ms",
          value_parser = model::units::parse_duration)]
    threshold: u64,
    /// Store requests and calls at sockets by themselves that take at least this long [default: the
    /// slowest 1 % of each port, or its 20 slowest, from --threshold on]
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
    /// Do not trace system calls and requests, which cost a busy server most, nor softirqs, and
    /// sample each CPU 49 times a second (instead of 997 for the first 2 seconds and then 99). System
    /// calls are looked at for 20 ms a second: 'show' estimates how many there are and how long
    /// they take. On-CPU time is divided into calls by samples, who ran in waits for a CPU of less than a
    /// millisecond is estimated from some of them, and causes that need what is left out are not looked at
    #[arg(long, conflicts_with = "slower_than")]
    cheap: bool,
    /// Turn off the most expensive parts of the recorder when recording costs more than this share of all CPUs, such as 2%
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

/// Characters of the command in the first line.
const TARGET: usize = 160;

/// Records.
pub fn run(options: &Options, store: &StoreOptions, started: Instant) -> Result<ExitCode, Failure> {
    let store = store.open_to_write()?;
    let recorder = Recorder::start(&watch(options), started)?;
    let signal = Asked::listen()?;
    let labels = labels(&options.labels, options.set.as_deref());
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
    let mut session = Session::new(recorder, traced, keeper, options);
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
        detail: if options.cheap { Detail::Cheap } else { Detail::Affordable },
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
