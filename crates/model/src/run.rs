//! A run: everything one recording knows.

mod bound;
mod header;
mod host;
mod recorder;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::units::counted;
use crate::{
    Accounts, Bench, Event, EventKind, Jitter, Messages, Metric, MetricSecond, OtherThreads,
    Outlier, Presence, RecorderPart, Shared, Sockets, Stack, StackId, Sums, ThreadAccounts,
};

pub use self::bound::BoundThreads;
pub use self::header::{Labels, Origin, RunEnd, RunHeader, RunId, RunStatus, RunSummary, Target};
pub use self::host::{Counter, CpuTime, Fact, Process};
pub use self::recorder::{Capability, Cost, Losses, ProbeCost};

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

    /// The part of the recorder that these values are of, if it did not last as long as the run: they are of a
    /// part of it. Known of parts that are given up where there is too much of what they record.
    pub fn given_up(&self, metric: &Metric) -> Option<&Capability> {
        let part = match metric {
            Metric::Syscall(_) | Metric::HeldSend(_) | Metric::LoopTurn => {
                RecorderPart::SystemCalls
            }
            Metric::SoftIrq(_) => RecorderPart::Softirqs,
            _ => return None,
        };
        self.capabilities.iter().find(|capability| capability.part == part && !capability.on)
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

    /// `name (pid 123)`; of a group that is summed `name (5 processes)`. Sums are by process id, so
    /// where the kernel gave an id to two processes that were recorded, both are named:
    /// `name (pid 123, which was first's before)`.
    pub fn process_name(&self, tgid: u32, name: &str) -> String {
        let group = self.sums.others.iter().find(|others| others.tgid == tgid);
        match group.filter(|_| OtherThreads::is_group(tgid)) {
            Some(group) => format!("{name} ({})", counted(group.processes, "process")),
            None if OtherThreads::is_group(tgid) => format!("{name} (several processes)"),
            None => match self.earlier_owner(tgid) {
                Some(first) => format!("{name} (pid {tgid}, which was {first}'s before)"),
                None => format!("{name} (pid {tgid})"),
            },
        }
    }

    /// The first process that had this id, by its main thread, if another one had it later.
    fn earlier_owner(&self, tgid: u32) -> Option<&str> {
        let mains = || self.threads.iter().filter(|thread| thread.tid == tgid);
        let first = mains().min_by_key(|thread| thread.first_ns)?;
        mains().any(|later| later.first_ns >= first.last_ns && !first.alive).then_some(&first.comm)
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
