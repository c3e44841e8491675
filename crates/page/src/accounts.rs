//! Where the time went: by account, by process, over the run, and in two runs.

use std::collections::BTreeMap;

use model::units::{count, duration, share_of};
use model::{Account, Accounts, Outlier, OutlierKind, Run};
use report::Class;
use serde::Serialize;

use crate::run::left_out;

/// Processes that are shown one by one; the others are summed.
const GROUPS: usize = 60;

/// Parts that a run's length is cut into.
const BINS: u64 = 240;

/// An account of all threads together.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AccountRow {
    /// As in JSON.
    pub account: String,
    /// The same in words.
    pub words: String,
    /// Place of its class.
    pub class: usize,
    /// Its time.
    pub ns: u64,
    /// The same as people read it.
    pub time: String,
    /// Its part of the wall time, as people read it.
    pub share: String,
}

/// A process, or what is summed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Group {
    /// Its name, and its number if it is one process.
    pub name: String,
    /// How many threads were watched.
    pub threads: u64,
    /// Their wall time.
    pub wall_ns: u64,
    /// The same as people read it.
    pub wall: String,
    /// Time by class, in the order of the classes.
    pub by_class: Vec<u64>,
    /// Its largest accounts, in words.
    pub largest: String,
}

/// Time off the CPU over the run, as the intervals kept whole show it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OverTime {
    /// Length of a part.
    pub bin_ns: u64,
    /// By class, in the order of the classes: time in each part.
    pub by_class: Vec<Vec<u64>>,
    /// What these are, with n, and what is not among them.
    pub basis: String,
}

/// An account in two runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Difference {
    /// As in JSON.
    pub account: String,
    /// Place of its class.
    pub class: usize,
    /// Its part of the wall time, 0 to 1: before and after.
    pub share: [f64; 2],
    /// Its time as people read it: before and after.
    pub time: [String; 2],
    /// Its part as people read it: before and after.
    pub shares: [String; 2],
}

/// The accounts of all threads, largest first.
pub fn rows(run: &Run) -> Vec<AccountRow> {
    let accounts = run.accounts();
    let total = accounts.total();
    let row = |(account, ns): (Account, u64)| AccountRow {
        account: account.to_string(),
        words: account.describe(),
        class: Class::of(account).place(),
        ns,
        time: duration(ns),
        share: share_of(ns, total),
    };
    accounts.largest_first().into_iter().map(row).collect()
}

/// The processes with most wall time, then the sum of all others.
pub fn groups(run: &Run) -> Vec<Group> {
    let mut by_tgid: BTreeMap<u32, (String, u64, Accounts)> = BTreeMap::new();
    for thread in run.threads.iter() {
        let name = || format!("{} (pid {})", run.comm(thread.tgid), thread.tgid);
        let entry = by_tgid.entry(thread.tgid).or_insert_with(|| (name(), 0, Accounts::new()));
        entry.1 += 1;
        entry.2.merge(&thread.accounts);
    }
    for others in &run.sums.others {
        let name = || format!("{} (summed)", others.comm);
        let entry = by_tgid.entry(others.tgid).or_insert_with(|| (name(), 0, Accounts::new()));
        entry.1 = entry.1.saturating_add(others.threads);
        entry.2.merge(&others.accounts);
    }
    let mut all: Vec<_> = by_tgid.into_values().collect();
    all.sort_by_key(|(_, _, accounts)| std::cmp::Reverse(accounts.total()));
    let rest = all.split_off(all.len().min(GROUPS));
    if !rest.is_empty() {
        let mut sum = (format!("{} further processes", rest.len()), 0, Accounts::new());
        for (_, threads, accounts) in &rest {
            sum.1 = threads.saturating_add(sum.1);
            sum.2.merge(accounts);
        }
        all.push(sum);
    }
    all.into_iter().map(|(name, threads, accounts)| group(name, threads, &accounts)).collect()
}

fn group(name: String, threads: u64, accounts: &Accounts) -> Group {
    let mut by_class = vec![0u64; Class::ALL.len()];
    for (account, ns) in accounts.iter() {
        let sum = &mut by_class[Class::of(account).place()];
        *sum = sum.saturating_add(ns);
    }
    let wall_ns = accounts.total();
    let word = |(account, ns): &(Account, u64)| format!("{account} {}", share_of(*ns, wall_ns));
    let largest = accounts.largest_first().iter().take(3).map(word).collect::<Vec<_>>();
    Group { name, threads, wall_ns, wall: duration(wall_ns), by_class, largest: largest.join(", ") }
}

/// Time off the CPU over the run. Of an interval it is known what it consists of and not in which
/// order, so each part of it is spread over all of it.
pub fn over_time(run: &Run, intervals: &[Outlier]) -> OverTime {
    let bin_ns = run.length_ns().div_ceil(BINS).max(1);
    let mut by_class = vec![vec![0u64; BINS as usize]; Class::ALL.len()];
    let mut n = 0u64;
    // A system call may have an interval off the CPU within it.
    let is_whole = |o: &&Outlier| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue);
    for outlier in intervals.iter().filter(is_whole) {
        n += 1;
        for (account, ns) in outlier.breakdown.iter() {
            let bins = &mut by_class[Class::of(account).place()];
            spread(bins, bin_ns, run.header.started_ns, outlier, ns);
        }
    }
    let basis = format!(
        "n = {} intervals off the CPU of {} and longer; shorter ones are in the accounts, not here{}",
        count(n),
        duration(run.header.threshold_ns),
        left_out(run, intervals)
    );
    OverTime { bin_ns, by_class, basis }
}

/// Adds `ns` evenly over the time of the interval.
fn spread(bins: &mut [u64], bin_ns: u64, started_ns: u64, outlier: &Outlier, ns: u64) {
    let (from, to) = (outlier.start_ns.max(started_ns) - started_ns, outlier.end_ns());
    let to = to.saturating_sub(started_ns).max(from);
    for (place, bin) in bins.iter_mut().enumerate().skip((from / bin_ns) as usize) {
        let begin = (place as u64).saturating_mul(bin_ns);
        if begin >= to {
            break;
        }
        let overlap = to.min(begin.saturating_add(bin_ns)).saturating_sub(from.max(begin));
        let part = u128::from(ns) * u128::from(overlap) / u128::from(outlier.duration_ns.max(1));
        *bin = bin.saturating_add(part as u64);
    }
}

/// The accounts of two runs, those that changed most first.
pub fn differences(before: &Run, after: &Run) -> Vec<Difference> {
    let (a, b) = (before.accounts(), after.accounts());
    let mut all: Vec<Account> = a.iter().chain(b.iter()).map(|(account, _)| account).collect();
    all.sort_unstable();
    all.dedup();
    let part = |of: &Accounts, account| of.get(account) as f64 / of.total().max(1) as f64;
    let mut rows: Vec<Difference> = all
        .into_iter()
        .map(|account| Difference {
            account: account.to_string(),
            class: Class::of(account).place(),
            share: [part(&a, account), part(&b, account)],
            time: [&a, &b].map(|of| duration(of.get(account))),
            shares: [&a, &b].map(|of| share_of(of.get(account), of.total())),
        })
        .collect();
    let change = |row: &Difference| (row.share[1] - row.share[0]).abs();
    rows.sort_by(|x, y| change(y).total_cmp(&change(x)));
    rows
}
