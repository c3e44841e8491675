//! First calls of lazily bound functions, in a process of which nothing else is recorded.

use std::collections::HashMap;

use model::RecorderPart;

use crate::bpf::outlier_record;
use crate::capability::{HostFacts, Plan, decide};
use crate::drain::Drain;
use crate::inbox::{self, OUTLIERS_WAITING};
use crate::names::Names;
use crate::probes::{Config, Probes};
use crate::sample_timers::Sampling;
use crate::watch::Found;
use crate::wire::{OutlierKind, TargetKind};
use crate::{namespace, privilege};

/// What sees a first call: its page faults, and the system call after it.
const NEEDED: [RecorderPart; 3] =
    [RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Faults];

/// A first call in which the dynamic linker touched a page that was not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCall {
    /// Path of the library that called, as the process sees it.
    pub library: String,
    /// What it called.
    pub symbol: String,
    /// Its first page fault in the linker, on CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// From then to the thread's next system call or page fault elsewhere.
    pub at_most_ns: u64,
    /// Page faults without a disk.
    pub minor_faults: u64,
    /// Page faults that read from one.
    pub major_faults: u64,
}

/// Sees first calls until it is dropped.
pub struct FirstCalls {
    drain: Drain,
    /// Keeps the programs attached.
    _probes: Probes,
    names: Names,
    /// Callers that are known, with what they call, by the stack they were found in; `None` if the
    /// linker did something else there.
    callers: HashMap<u64, Option<(String, String)>>,
    /// Calls without one: callers come by another ring, and may be a little later.
    waiting: Vec<outlier_record>,
}

impl FirstCalls {
    /// Begins to watch a process; the error says why that is not possible here.
    pub fn start(pid: u32) -> Result<FirstCalls, String> {
        let mut recording = match decide(&HostFacts::of_this_host()) {
            Plan::Sample(because) => return Err(because),
            Plan::Record(recording) => recording,
        };
        let mut off = recording.off.iter();
        if let Some((_, because)) = off.find(|(part, _)| NEEDED.contains(part)) {
            return Err(because.clone());
        }
        recording.probes.retain(|probe| NEEDED.contains(&probe.part));
        let config = Config {
            target: Found { kind: TargetKind::Process, pid, tgid: pid, cgroup: None },
            in_pid_namespace: namespace::is_inner().map_err(|error| error.to_string())?,
            follow: false,
            // Nothing else is long enough to be sent.
            threshold_ns: u64::MAX,
            slow_request_ns: u64::MAX,
            every_first_call: true,
            late_only: false,
            no_stacks: false,
            sampling: Sampling::Usual,
        };
        let mut probes = Probes::start(&config, &recording).map_err(|error| error.to_string())?;
        privilege::drop_unneeded(false);
        let drain = Drain::start(&mut probes).map_err(|error| error.to_string())?;
        let (names, callers, waiting) = (Names::default(), HashMap::new(), Vec::new());
        Ok(FirstCalls { drain, _probes: probes, names, callers, waiting })
    }

    /// Those that ended since the last time. One that goes on is not reported, nor one that touched
    /// no page that was missing.
    pub fn take(&mut self) -> Vec<SeenCall> {
        let inbox = self.drain.take(OUTLIERS_WAITING);
        for words in inbox.words {
            let at = self.names.first_call(words.tgid, &words.words);
            let call = at.and_then(|at| self.names.call_at(words.tgid, at));
            self.callers.insert(words.id, call);
        }
        let is_it = |record: &outlier_record| {
            OutlierKind::of(record.kind) == Some(OutlierKind::FirstCall) && record.user_stack != 0
        };
        let new: Vec<_> = inbox.outliers.iter().filter_map(inbox::outlier).filter(is_it).collect();
        // What has no caller by the second time never gets one: it was lost.
        let again = std::mem::take(&mut self.waiting);
        let mut seen = Vec::new();
        for (record, is_new) in again
            .iter()
            .map(|record| (record, false))
            .chain(new.iter().map(|record| (record, true)))
        {
            match self.callers.remove(&record.user_stack) {
                Some(Some((library, symbol))) => seen.push(SeenCall {
                    library,
                    symbol,
                    start_ns: record.start_ns,
                    at_most_ns: record.duration_ns,
                    minor_faults: record.minor_faults,
                    major_faults: record.major_faults,
                }),
                None if is_new => self.waiting.push(*record),
                _ => {}
            }
        }
        seen
    }
}
