//! What is watched, and how.

use std::ffi::OsString;
use std::path::Path;

use inspect::read::is_of_the_ended;
use model::{Fact, Labels, RecorderPart, RunHeader, Target};

use crate::cgroups::{self, Cgroup, CgroupName};
use crate::launch::{self, Held};
use crate::wire::TargetKind;
use crate::{Error, host};

/// What to watch, and how.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The target.
    pub target: WatchTarget,
    /// Children too, those that already run among them.
    pub follow: bool,
    /// Intervals at least this long are kept whole, ns.
    pub threshold_ns: u64,
    /// Shed probes when recording costs more than this share of all CPUs, percent.
    pub budget_percent: Option<f64>,
    /// How much of what happens often.
    pub detail: Detail,
    /// Which timer ended a sleep.
    pub timers: Timers,
    /// Which requests at sockets are kept whole.
    pub requests: SlowRequests,
    /// What looks like a secret in a command's arguments is kept in the run, too.
    pub keep_secrets: bool,
    /// Its standard output goes to a pipe, a command's: see [`crate::Recorder::take_child`].
    pub pipe_stdout: bool,
}

impl Watch {
    /// Parts that are not wanted.
    pub(crate) fn unasked(&self) -> Vec<RecorderPart> {
        let asked = [
            (RecorderPart::Timers, self.timers != Timers::Off),
            (RecorderPart::Requests, self.requests != SlowRequests::Off),
            (RecorderPart::SampledCalls, self.detail != Detail::All),
        ];
        asked.into_iter().filter(|(_, is)| !is).map(|(part, _)| part).collect()
    }

    /// What is known of the run at its start, which was at `started_ns`.
    pub(crate) fn header(&self, sampled: bool, started_ns: u64) -> RunHeader {
        let since = clock::monotonic_ns().saturating_sub(started_ns);
        RunHeader {
            started_unix_ns: clock::unix_ns() - since as i64,
            started_ns,
            target: self.target.named(self.keep_secrets),
            follow: self.follow,
            threshold_ns: self.threshold_ns,
            sampled,
            recorder_pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: Labels::new(),
        }
    }
}

/// How much is recorded of what happens often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All of it, whatever that costs.
    All,
    /// All of it for two seconds, and then as long as no CPU has so much of it that it would cost it
    /// more than 2 % each: system calls, which are sampled then, and softirqs.
    Affordable,
    /// Without the parts that cost a busy server most: system calls, of which samples are taken,
    /// requests and softirqs.
    Cheap,
}

/// Which requests at sockets are slow, and kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowRequests {
    /// Requests are not recorded.
    Off,
    /// The slowest hundredth of each port, of those that take the threshold.
    Slowest,
    /// Those that take so long, ns.
    From(u64),
}

/// What of timers is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// Nothing.
    Off,
    /// The timer that ended each sleep ([`model::TimerLegs`]), and no stacks: taking those would
    /// make every tick late by tens of microseconds.
    On,
    /// The same, and of the sleeps only those are kept that ended later than the threshold after
    /// the time asked for; so those in time cost next to nothing.
    LateOnly,
}

/// The target of a recording.
#[derive(Clone, Debug)]
pub enum WatchTarget {
    /// A command to start: the program, and its arguments if any.
    Command(Vec<OsString>),
    /// A running process.
    Process(u32),
    /// One thread.
    Thread(u32),
    /// Everything that is visible in whylag's PID namespace.
    Host,
    /// All processes of a cgroup and below it, later ones too.
    Cgroup(CgroupName),
}

impl WatchTarget {
    fn named(&self, keep_secrets: bool) -> Target {
        match self {
            WatchTarget::Command(words) => {
                Target::Command(inspect::command_line::to_store(words, keep_secrets))
            }
            WatchTarget::Process(pid) => Target::Process(*pid),
            WatchTarget::Thread(tid) => Target::Thread(*tid),
            WatchTarget::Host => Target::Host,
            WatchTarget::Cgroup(name) => name.target(),
        }
    }

    /// What stays as it is: facts of the host, and of a command.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let mut facts = inspect::fingerprint::host();
        if let WatchTarget::Command(words) = self
            && let Some(program) = words.first()
        {
            facts.extend(inspect::fingerprint::command(Path::new(program), std::env::vars_os()));
        }
        facts
    }

    /// Facts of the process that is watched, once a command runs.
    pub(crate) fn process_facts(&self) -> Vec<Fact> {
        match self {
            WatchTarget::Process(pid) => inspect::fingerprint::process(*pid),
            WatchTarget::Thread(tid) => {
                inspect::fingerprint::process(host::process_of(*tid).unwrap_or(*tid))
            }
            _ => Vec::new(),
        }
    }
}

/// A target that was found on this host.
#[derive(Clone, Debug)]
pub struct Found {
    /// How the kernel side knows it.
    pub kind: TargetKind,
    /// Process or thread, 0 if there are several.
    pub pid: u32,
    /// That process, or that thread's.
    pub tgid: u32,
    /// The cgroup.
    pub cgroup: Option<Cgroup>,
}

impl Found {
    /// Looks the target up; a command is started, and held before its first instruction.
    pub fn of(watch: &Watch) -> Result<(Found, Option<Held>), Error> {
        let one = |kind, pid, tgid| Found { kind, pid, tgid, cgroup: None };
        Ok(match &watch.target {
            WatchTarget::Command(words) => {
                let held = launch::hold(words, watch.pipe_stdout)?;
                (one(TargetKind::Command, held.pid, held.pid), Some(held))
            }
            WatchTarget::Process(pid) if !Path::new(&format!("/proc/{pid}")).exists() => {
                return Err(Error::NoProcess(*pid));
            }
            WatchTarget::Process(pid) => (one(TargetKind::Process, *pid, *pid), None),
            WatchTarget::Thread(tid) => {
                let tgid =
                    host::process_of(*tid).map_err(|error| match is_of_the_ended(&error) {
                        true => Error::NoThread(*tid),
                        false => Error::io("reading whose thread it is")(error),
                    })?;
                (one(TargetKind::Thread, *tid, tgid), None)
            }
            WatchTarget::Host => (one(TargetKind::Host, 0, 0), None),
            WatchTarget::Cgroup(name) => {
                let cgroup = Some(cgroups::find(name)?);
                (Found { cgroup, ..one(TargetKind::Cgroup, 0, 0) }, None)
            }
        })
    }

    /// Why it has ended, `None` while it is there. A command's end its parent knows.
    pub fn ended(&self) -> Option<String> {
        match (self.kind, &self.cgroup) {
            (TargetKind::Process, _) => {
                host::is_gone(self.pid).then(|| format!("process {} ended", self.pid))
            }
            (TargetKind::Thread, _) => {
                let has_ended = host::process_of(self.pid).is_err_and(|e| is_of_the_ended(&e));
                has_ended.then(|| format!("thread {} ended", self.pid))
            }
            (_, Some(cgroup)) if !cgroup.directory.exists() => {
                Some(format!("the cgroup {} was removed", cgroup.directory.display()))
            }
            _ => None,
        }
    }
}
