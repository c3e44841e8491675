//! Threads that receive, and what else they did while their sockets' queues filled.

use std::collections::BTreeSet;

use model::{
    Account, Accounts, Blocked, Event, Outlier, OutlierKind, Run, Syscall, ThreadAccounts, part_of,
};

use crate::case::Case;
use crate::case::held_sends;
use crate::case::lost::{Class, class};
use crate::part::clip::{Clip, clips};

/// Calls that receive from a socket and from nothing else.
const RECEIVES: [&str; 3] = ["recvfrom", "recvmsg", "recvmmsg"];

/// It received from a socket, or waited to.
pub(crate) fn receives(thread: &ThreadAccounts) -> bool {
    let calls = RECEIVES.iter().filter_map(|name| Syscall::named(name));
    calls.map(Account::Syscall).any(|call| thread.accounts.get(call) > 0)
        || thread.accounts.get(Account::Blocked(Blocked::SocketReceive)) > 0
}

/// What receivers did while queues filled.
#[derive(Default)]
pub(crate) struct Stall<'a> {
    /// Other than wait for work, within the windows.
    pub accounts: Accounts,
    /// The longest interval of each window.
    pub each: Vec<&'a Outlier>,
    /// Sends held back, where these were most of it.
    pub held: Vec<&'a Event>,
    /// All windows together.
    pub windows_ns: u64,
}

impl<'a> Stall<'a> {
    /// In each window (process, from, to), of the process's threads that receive, the one that was
    /// away longest.
    pub(crate) fn of(case: &Case<'a>, windows: Vec<(u32, u64, u64)>) -> Self {
        let mut stall = Stall::default();
        for (tgid, from, to) in windows {
            stall.windows_ns = stall.windows_ns.saturating_add(to.saturating_sub(from));
            let window = Window { run: case.run, from, to };
            let threads = case.run.threads.iter().filter(|t| t.tgid == tgid && receives(t));
            let tids: BTreeSet<u32> = threads.map(|thread| thread.tid).collect();
            let most_away = tids.into_iter().map(|tid| window.thread(tid));
            if let Some(most_away) = most_away.max_by_key(|away| away.accounts.total()) {
                stall.accounts.merge(&most_away.accounts);
                stall.each.extend(most_away.longest);
                stall.held.extend(most_away.held);
            }
        }
        if stall.each.len() > stall.held.len() {
            stall.held.clear();
        }
        stall
    }

    pub(crate) fn longest(&self) -> Option<&'a Outlier> {
        self.each.iter().copied().max_by_key(|outlier| outlier.duration_ns)
    }
}

struct Window<'a> {
    run: &'a Run,
    from: u64,
    to: u64,
}

/// What one thread did in a window.
struct Away<'a> {
    accounts: Accounts,
    longest: Option<&'a Outlier>,
    held: Vec<&'a Event>,
}

impl<'a> Window<'a> {
    /// Held sends, or else intervals that were kept whole.
    fn thread(&self, tid: u32) -> Away<'a> {
        let (from, to) = (self.from, self.to);
        let near = |o: &&Outlier| {
            o.tid == tid
                && o.start_ns < to
                && o.end_ns() > from
                && o.kind != OutlierKind::LockHold
                && o.breakdown.sum_of(is_away) > 0
        };
        let kept: Vec<&Outlier> = self.run.outliers.iter().filter(near).collect();
        let accounts = away(&kept, from, to);
        let of_it = |e: &&Event| e.tid == tid && e.time_ns < to && e.end_ns() > from;
        let held: Vec<&Event> = held_sends::kept(self.run).filter(of_it).collect();
        let held_accounts = self.waits_for_sends(&held);
        if held_accounts.total() > accounts.total() {
            return Away { accounts: held_accounts, longest: None, held };
        }
        let longest = kept.into_iter().max_by_key(|outlier| outlier.duration_ns);
        Away { accounts, longest, held: Vec::new() }
    }

    fn waits_for_sends(&self, held: &[&Event]) -> Accounts {
        let within = |e: &Event| e.end_ns().min(self.to).saturating_sub(e.time_ns.max(self.from));
        held.iter().filter_map(|e| Some((held_sends::account(e)?, within(e)))).collect()
    }
}

/// What a thread did in a window other than wait for work: sums of its own intervals, or of first
/// calls where that is more, because the waits within these may be too short to be kept.
fn away(kept: &[&Outlier], from: u64, to: u64) -> Accounts {
    let of_clips = |clip: Clip| clip.accounts.iter().collect::<Vec<_>>();
    let own = clips(kept.iter().copied(), from, to).into_iter().flat_map(of_clips);
    let first_calls = kept.iter().filter(|o| o.kind == OutlierKind::FirstCall).flat_map(|o| {
        let within = o.end_ns().min(to).saturating_sub(o.start_ns.max(from));
        o.breakdown.iter().map(move |(account, ns)| (account, part_of(ns, within, o.duration_ns)))
    });
    let own: Accounts = own.filter(|(account, _)| is_away(*account)).collect();
    let first_calls: Accounts = first_calls.filter(|(account, _)| is_away(*account)).collect();
    if first_calls.total() > own.total() { first_calls } else { own }
}

fn is_away(account: Account) -> bool {
    matches!(class(account), Class::Lost | Class::Work)
}
