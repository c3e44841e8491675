//! Who had the CPU while threads waited for it, by the name of the process: a build, or a server that starts a
//! process for each request, has many, and none of them has it for long.

use std::collections::{BTreeMap, BTreeSet};

use model::RunnerSum;

use crate::case::Case;
use crate::text::count;

/// Processes of one name that ran while threads waited for their CPU.
pub(super) struct Runners<'a> {
    /// Their name, or that of a thread of theirs.
    pub comm: &'a str,
    pub tgids: BTreeSet<u32>,
    pub ns: u64,
    /// What the one had that had most.
    pub most_ns: u64,
}

impl Runners<'_> {
    /// `rustc (pid 12)`, `24 processes named rustc`.
    pub(super) fn name(&self, case: &Case) -> String {
        match self.tgids.first() {
            Some(only) if self.tgids.len() == 1 => case.runner_name(*only, self.comm),
            _ => format!("{} processes named {}", count(self.tgids.len() as u64), self.comm),
        }
    }
}

/// Runners that `which` accepts, without the idle task and whylag, the largest first.
pub(super) fn largest<'a>(case: &Case<'a>, which: impl Fn(&RunnerSum) -> bool) -> Vec<Runners<'a>> {
    let mut by_process = BTreeMap::<u32, (&str, u64)>::new();
    let nobody = [0, case.run.header.recorder_pid];
    let seen = case.run.sums.runners.iter().filter(|sum| !nobody.contains(&sum.runner_tgid));
    for sum in seen.filter(|sum| which(sum)) {
        let (_, ns) = by_process.entry(sum.runner_tgid).or_insert((&sum.runner_comm, 0));
        *ns = ns.saturating_add(sum.ns);
    }
    let mut by_name = BTreeMap::<&str, Runners>::new();
    for (tgid, (thread, ns)) in by_process {
        let comm = case.process_comm(tgid).unwrap_or(thread);
        let new = || Runners { comm, tgids: BTreeSet::new(), ns: 0, most_ns: 0 };
        let runners = by_name.entry(comm).or_insert_with(new);
        runners.tgids.insert(tgid);
        runners.ns = runners.ns.saturating_add(ns);
        runners.most_ns = runners.most_ns.max(ns);
    }
    let mut runners: Vec<_> = by_name.into_values().collect();
    runners.sort_by_key(|runner| std::cmp::Reverse(runner.ns));
    runners
}
