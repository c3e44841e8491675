//! A run: everything one recording knows.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::counted;
use crate::{
    Accounts, Bench, Event, EventKind, Jitter, Messages, MetricSecond, OtherThreads, Outlier,
    Presence, RecorderPart, Shared, Sockets, Stack, StackId, Sum, Sums, ThreadAccounts,
};

/// Number of a run in its store, from 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What was watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A command that whylag started.
    Command(Vec<String>),
    /// All threads of a process.
    Process(u32),
    /// One thread.
    Thread(u32),
    /// Every thread of the host.
    #[default]
    Host,
    /// All processes of a systemd unit.
    Unit(String),
    /// All processes of a container, by a part of its id.
    Container(String),
    /// All processes of a cgroup, by its path.
    Cgroup(String),
    /// Micro-benchmarks; the words of the command line.
    Bench(Vec<String>),
    /// Timers; the words of the command line.
    Jitter(Vec<String>),
    /// The trace file that a program left, of its messages.
    Trace(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Command(words) => f.write_str(&words.join(" ")),
            Target::Process(pid) => write!(f, "pid {pid}"),
            Target::Thread(tid) => write!(f, "tid {tid}"),
            Target::Host => f.write_str("all of the host"),
            Target::Unit(unit) => write!(f, "unit {unit}"),
            Target::Container(id) => write!(f, "container {id}"),
            Target::Cgroup(path) => write!(f, "cgroup {path}"),
            Target::Bench(words) => write!(f, "bench {}", words.join(" ")),
            Target::Jitter(words) => write!(f, "jitter {}", words.join(" ")),
            Target::Trace(path) => write!(f, "trace {path}"),
        }
    }
}

/// How a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Being recorded now.
    #[default]
    Recording,
    /// Ended properly.
    Complete,
    /// The recorder died or its disk was full: all up to the last second is there.
    Interrupted,
}

/// Known when a run begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Wall-clock start, nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// The same moment on CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// What is watched.
    pub target: Target,
    /// True if children are watched as well.
    pub follow: bool,
    /// Outlier threshold.
    pub threshold_ns: u64,
    /// True if thread states were sampled from /proc instead of recorded.
    pub sampled: bool,
    /// Process id of the recorder.
    pub recorder_pid: u32,
    /// Version of whylag.
    pub version: String,
    /// What the user calls the run: `build=42`, `set=before`.
    #[serde(default)]
    pub labels: Labels,
}

/// Names and values that the user gave a run.
pub type Labels = BTreeMap<String, String>;

/// Known when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When recording stopped.
    pub ended_ns: u64,
    /// Exit status of the command, as a shell reports it (128 + signal).
    pub exit_status: Option<i32>,
    /// Why recording ended, in words.
    pub reason: String,
}

/// A line of `whylag runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Number.
    pub id: RunId,
    /// Header.
    pub header: RunHeader,
    /// Status.
    pub status: RunStatus,
    /// Length so far.
    pub length_ns: u64,
    /// Threads seen.
    pub threads: u64,
    /// Outliers kept.
    pub outliers: u64,
    /// What it takes in its store, approximately.
    #[serde(default)]
    pub bytes: u64,
    /// The first finding's cause, if it was explained.
    pub leading_cause: Option<String>,
    /// The file that it was imported from.
    #[serde(default)]
    pub origin: Option<Origin>,
}

/// Where an imported run comes from. The name of its host is a fact, `host.name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the file.
    pub file: String,
    /// Its number in the store that it was recorded into.
    pub number: RunId,
}

/// A fact of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Stable name: `kernel.release`, `clocksource.current`, `sysctl.vm.swappiness`.
    pub name: String,
    /// Its value as read.
    pub value: String,
    /// Where it was read: a file, a system call.
    pub source: String,
}

/// A number that the kernel keeps, read when recording began and again until it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Stable name: `cgroup.cpu.nr_throttled`, `softirq.net_rx`; its unit is its last word where it
    /// is not a plain count.
    pub name: String,
    /// Where it was read: a file.
    pub source: String,
    /// First value read.
    pub first: u64,
    /// Last value read.
    pub last: u64,
}

impl Sum for Counter {
    fn key(&self) -> impl Serialize {
        (&self.name, &self.source)
    }

    fn amount(&self) -> u64 {
        0
    }

    fn count(&self) -> u64 {
        0
    }

    fn ns(&self) -> u64 {
        0
    }

    fn tgid(&self) -> Option<u32> {
        None
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [None, None]
    }

    fn add(&mut self, other: &Self) {
        self.last = self.last.max(other.last);
    }
}

impl Counter {
    /// By how much it grew.
    pub fn growth(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }
}

/// A process that was watched, or that appears as waker, holder or runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub tgid: u32,
    /// Name when last seen.
    pub comm: String,
    /// Path of the executable, empty if unknown.
    pub exe: String,
    /// GNU build id in hex, empty if unknown.
    pub build_id: String,
    /// True if its threads were watched.
    pub watched: bool,
}

/// A part of the recorder, and whether it worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Which.
    pub part: RecorderPart,
    /// True if it was on all the time.
    pub on: bool,
    /// Why it was off, or became so; empty when on.
    pub because: String,
}

/// What was lost: count by kind, in windows of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// (kind, start of the interval in which it was noticed) -> how many.
    pub seen: Vec<(String, u64, u64)>,
}

impl Losses {
    /// The kind of values that found no histogram: all were taken.
    pub const VALUES: &str = "values (histograms taken)";

    /// Values that found no histogram.
    pub fn values(&self) -> u64 {
        let values = self.seen.iter().filter(|(kind, _, _)| kind == Losses::VALUES);
        values.fold(0, |sum, (_, _, count)| sum.saturating_add(*count))
    }

    /// Total by kind.
    pub fn by_kind(&self) -> BTreeMap<String, u64> {
        let mut totals = BTreeMap::<String, u64>::new();
        for (kind, _, count) in &self.seen {
            let total = totals.entry(kind.clone()).or_default();
            *total = total.saturating_add(*count);
        }
        totals
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.seen.iter().fold(0, |sum, (_, _, count)| sum.saturating_add(*count))
    }
}

/// What whylag itself cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the recorder process.
    pub cpu_ns: u64,
    /// Time in BPF programs on all CPUs, paid by whoever triggered them: runs times the mean
    /// duration measured in sample windows.
    pub bpf_ns: u64,
    /// Runs of BPF programs.
    pub bpf_runs: u64,
    /// Events received from the kernel.
    pub events: u64,
    /// Bytes received through ring buffers.
    pub ring_bytes: u64,
    /// Peak resident memory of the recorder, bytes.
    pub peak_rss_bytes: u64,
    /// From start of whylag to all probes attached.
    pub attach_ns: u64,
    /// By program, most expensive first.
    pub probes: Vec<ProbeCost>,
    /// Copies of the top of user stacks, 8 KiB each, for code without frame pointers.
    #[serde(default)]
    pub stack_copies: u64,
    /// Stacks of intervals that were kept whole, but not copied: too many in a second.
    #[serde(default)]
    pub stacks_not_copied: u64,
}

/// Cost of one BPF program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCost {
    /// Name of the program.
    pub program: String,
    /// Runs.
    pub runs: u64,
    /// Runs times mean duration.
    pub ns: u64,
}

/// One CPU over the run, from /proc/stat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Which.
    pub cpu: u32,
    /// Idle, including waiting for I/O.
    pub idle_ns: u64,
    /// Everything but idle and stolen.
    pub busy_ns: u64,
    /// Stolen by the hypervisor.
    pub stolen_ns: u64,
}

impl Sum for CpuTime {
    fn key(&self) -> impl Serialize {
        self.cpu
    }

    fn amount(&self) -> u64 {
        0
    }

    fn count(&self) -> u64 {
        0
    }

    fn ns(&self) -> u64 {
        self.idle_ns.saturating_add(self.busy_ns).saturating_add(self.stolen_ns)
    }

    fn tgid(&self) -> Option<u32> {
        None
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [None, None]
    }

    fn add(&mut self, other: &Self) {
        self.idle_ns = self.idle_ns.saturating_add(other.idle_ns);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.stolen_ns = self.stolen_ns.saturating_add(other.stolen_ns);
    }
}

/// A run as read back from the store.
///
/// Everything is complete except `outliers`, which holds the longest (`outlier_count` says how
/// many there are), and `events` and `messages.slow`, likewise (`event_count`, `slow_count`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// Number.
    pub id: RunId,
    /// Header.
    pub header: RunHeader,
    /// Status.
    pub status: RunStatus,
    /// End, unless interrupted or still being recorded.
    pub end: Option<RunEnd>,
    /// Last moment for which data was stored.
    pub heartbeat_ns: u64,
    /// Facts.
    pub facts: Vec<Fact>,
    /// Parts of the recorder.
    pub capabilities: Vec<Capability>,
    /// Processes.
    pub processes: Shared<Vec<Process>>,
    /// Watched threads; where there were very many, those with most time: the rest is in
    /// `sums.others`.
    pub threads: Shared<Vec<ThreadAccounts>>,
    /// Histograms per second.
    pub seconds: Shared<Vec<MetricSecond>>,
    /// The longest outliers, longest first.
    pub outliers: Vec<Outlier>,
    /// How many outliers were stored.
    pub outlier_count: u64,
    /// Rare events, in time order; the first ones if there are very many.
    pub events: Shared<Vec<Event>>,
    /// How many events were stored.
    pub event_count: u64,
    /// Stacks by identity.
    pub stacks: Shared<HashMap<StackId, Stack>>,
    /// Sums since its start.
    #[serde(flatten)]
    pub sums: Sums,
    /// Losses.
    pub losses: Losses,
    /// Cost of the recorder.
    pub cost: Cost,
    /// What the micro-benchmarks measured, if it was a run of them.
    pub bench: Option<Bench>,
    /// What was seen of timers, if it was a run of `whylag jitter`.
    pub jitter: Option<Jitter>,
    /// What traced programs reported of their messages: the slowest, and all that was counted.
    #[serde(default)]
    pub messages: Messages,
    /// The target's sockets.
    #[serde(default)]
    pub sockets: Sockets,
    /// When programs ran, watched or not, in time order.
    #[serde(default)]
    pub presences: Shared<Vec<Presence>>,
    /// Intervals of the threads that had the messages of [`Messages::windows`], in these times, those
    /// below the threshold, too. They come with a run that is loaded whole.
    #[serde(skip)]
    pub in_messages: Shared<Vec<Outlier>>,
}

/// A window of a run: some of its time, of all threads or of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From here on.
    pub from_ns: u64,
    /// Up to here.
    pub to_ns: u64,
    /// The thread; `None`: all.
    pub tid: Option<u32>,
}

impl Run {
    /// Wall time of all watched threads together.
    pub fn wall_ns(&self) -> u64 {
        let others = self.sums.others.iter().map(|others| others.accounts.total());
        self.threads.iter().map(ThreadAccounts::wall_ns).chain(others).fold(0, u64::saturating_add)
    }

    /// Watched threads, those included that are summed.
    pub fn thread_count(&self) -> u64 {
        let others = self.sums.others.iter().map(|others| others.threads);
        others.fold(self.threads.len() as u64, u64::saturating_add)
    }

    /// Accounts of all watched threads together.
    pub fn accounts(&self) -> Accounts {
        let mut sum = Accounts::new();
        self.threads.iter().for_each(|thread| sum.merge(&thread.accounts));
        self.sums.others.iter().for_each(|others| sum.merge(&others.accounts));
        sum
    }

    /// Length of the recording.
    pub fn length_ns(&self) -> u64 {
        let end = self.end.as_ref().map_or(self.heartbeat_ns, |end| end.ended_ns);
        end.saturating_sub(self.header.started_ns)
    }

    /// How often the process had executed a program by then: a process lives from one exec to the
    /// next. Of a long run only the first events are loaded.
    pub fn execs(&self, tgid: u32, at_ns: u64) -> usize {
        let of_it = |e: &&Event| e.kind == EventKind::Exec && e.tgid == tgid && e.time_ns <= at_ns;
        self.events.iter().filter(of_it).count()
    }

    /// The fact of this name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
    }

    /// The fact of this name, if it is a whole number.
    pub fn fact_number(&self, name: &str) -> Option<i64> {
        self.fact(name)?.parse().ok()
    }

    /// The counter of this name that grew most, if it was read: there may be several processes, and
    /// each may have been in several cgroups.
    pub fn counter(&self, name: &str) -> Option<&Counter> {
        let named = self.sums.counters.iter().filter(|counter| counter.name == name);
        named.max_by_key(|counter| (counter.growth(), counter.last))
    }

    /// `name (pid 123)`; of a group that is summed `name (5 processes)`.
    pub fn process_name(&self, tgid: u32, name: &str) -> String {
        let group = self.sums.others.iter().find(|others| others.tgid == tgid);
        match group.filter(|_| OtherThreads::is_group(tgid)) {
            Some(group) => format!("{name} ({})", counted(group.processes, "process")),
            None if OtherThreads::is_group(tgid) => format!("{name} (several processes)"),
            None => format!("{name} (pid {tgid})"),
        }
    }

    /// `27 threads of 12 processes summed`: there were too many to keep them one by one. `None` if
    /// all are.
    pub fn summed(&self) -> Option<String> {
        let total = |number: fn(&OtherThreads) -> u64| {
            self.sums.others.iter().map(number).fold(0, u64::saturating_add)
        };
        let threads = total(|others| others.threads);
        let text = || {
            let processes = |others: &OtherThreads| match OtherThreads::is_group(others.tgid) {
                true => others.processes,
                false => 1,
            };
            let processes = counted(total(processes), "process");
            format!("{} of {processes} summed", counted(threads, "thread"))
        };
        (threads > 0).then(text)
    }

    /// Name of a process: `comm`, or `?` if it was never seen.
    pub fn comm(&self, tgid: u32) -> &str {
        self.processes.iter().find(|p| p.tgid == tgid).map_or("?", |p| p.comm.as_str())
    }
}
