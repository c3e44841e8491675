//! Who reads a pipe, and what the last reader of a pipeline does.

use std::collections::BTreeMap;

use model::{Account, Blocked, WaitSum};

use crate::case::answers::is_for_a_stage;
use crate::case::{Case, Waits, sum_of};
use crate::causes::tries::Tries;
use crate::text::duration;

pub(super) const PIPE: Account = Account::Blocked(Blocked::PipeWrite);
/// The object of a wait for room in a terminal is its inode number and this.
const TERMINAL: u64 = 1 << 62;

/// `pipe with inode 7`, `terminal with inode 5`.
pub(super) fn described(object: u64) -> String {
    match object & TERMINAL {
        0 => format!("pipe with inode {object}"),
        _ => format!("terminal with inode {}", object & !TERMINAL),
    }
}

/// What threads wait longest for room in: `pipe` or `terminal`.
pub(super) fn kind(case: &Case) -> &'static str {
    let longest = case.waits(PIPE).max_by_key(|wait| wait.ns);
    if longest.is_some_and(|wait| wait.object & TERMINAL != 0) { "terminal" } else { "pipe" }
}
const READ: Account = Account::Blocked(Blocked::PipeRead);
/// Readers followed from one to the next, at most.
const STAGES: usize = 8;

/// The last reader of a pipeline that is recorded, and what it did.
pub(super) struct LastStage {
    pub(super) name: String,
    on_cpu_ns: u64,
    /// Everything but waiting for input.
    active_ns: u64,
    /// What else took most.
    most: Option<(Account, u64)>,
}

impl LastStage {
    pub(super) fn is_busy(&self) -> bool {
        self.on_cpu_ns > self.active_ns / 2
    }

    pub(super) fn in_words(&self) -> String {
        let name = &self.name;
        let most = self.most.filter(|_| !self.is_busy());
        let (what, ns) = most.map_or_else(
            || ("computes".to_owned(), self.on_cpu_ns),
            |(account, ns)| (format!("is in {account}"), ns),
        );
        format!(
            "{name} reads more slowly than is written: it {what} for {} of the {} in which it has \
             input",
            duration(ns),
            duration(self.active_ns)
        )
    }
}

/// From reader to reader, as long as each itself mostly waits for room in a pipe.
pub(super) fn last_stage(case: &Case, first: &Reader) -> Option<LastStage> {
    let (mut tgid, mut name) = (first.tgid, first.name.clone());
    for _ in 0..STAGES {
        let stage = stage(case, tgid, name)?;
        let is_full = stage.most.is_some_and(|(account, _)| account == PIPE) && !stage.is_busy();
        match reader_of(case, |wait| wait.tgid == tgid).filter(|_| is_full) {
            Some(next) => (tgid, name) = (next.tgid, next.name),
            None => return Some(stage),
        }
    }
    None
}

fn stage(case: &Case, tgid: u32, name: String) -> Option<LastStage> {
    let accounts = case.process(tgid)?;
    let input = [Blocked::PipeRead, Blocked::Poll].map(Account::Blocked);
    let active_ns = accounts.sum_of(|a| !input.contains(&a) && a != Account::Unaccounted);
    let on_cpu_ns = accounts.sum_of(Account::is_running);
    let others = accounts.largest_first().into_iter();
    let most = others.into_iter().find(|(a, _)| !a.is_running() && !input.contains(a));
    Some(LastStage { name, on_cpu_ns, active_ns, most })
}

/// Who reads the pipe that was found full: nobody waits for it, but it has found the pipe empty itself.
pub(super) fn reader_of_tries(case: &Case, tries: &Tries) -> Option<LastStage> {
    let waits = case.waits(READ).filter(|wait| wait.object == tries.inode() && wait.object != 0);
    let reader = waits.max_by_key(|wait| wait.count)?.tgid;
    stage(case, reader, case.process_name(reader))
}

pub(super) struct Reader {
    tgid: u32,
    pub(super) name: String,
    pub(super) waits: Waits,
}

/// The process that ended most of the waiting, if any is known.
pub(super) fn reader(case: &Case) -> Option<Reader> {
    reader_of(case, |_| true)
}

/// The same of the waits that `which` accepts.
fn reader_of(case: &Case, which: impl Fn(&WaitSum) -> bool) -> Option<Reader> {
    let mut wakers: BTreeMap<u32, Vec<&WaitSum>> = BTreeMap::new();
    let known = |wait: &&WaitSum| wait.waker_tgid != 0 && !is_for_a_stage(wait);
    for wait in case.waits(PIPE).filter(|wait| known(wait) && which(wait)) {
        wakers.entry(wait.waker_tgid).or_default().push(wait);
    }
    let (tgid, waits) = wakers.into_iter().max_by_key(|(_, w)| sum_of(w.iter().copied()).ns)?;
    let name = format!("{} (pid {tgid})", waits.first()?.waker_comm);
    Some(Reader { tgid, name, waits: sum_of(waits.into_iter()) })
}
