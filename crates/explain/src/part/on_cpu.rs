//! What threads did on a CPU within a part, as far as the rest of their lives tells it.
//!
//! Time on a CPU is in no interval that is kept whole, and its samples have no time. But the accounts
//! of a thread's life are exact. What they have on a CPU beside the kept intervals was spent between
//! these, and is taken to be spread evenly there; and where on a CPU a process spent an account is
//! taken to be the same at all times. Both are estimates, and lower the confidence of what rests on
//! them.

use std::collections::BTreeMap;

use model::{Account, Accounts, PathSum, Run, ThreadAccounts, part_of};

/// On a CPU, for itself or interrupted.
pub(crate) fn is_on_cpu(account: Account) -> bool {
    let interrupted = [Account::HardIrq, Account::SoftIrq, Account::Stolen];
    account.is_running() || interrupted.contains(&account)
}

/// The time on a CPU of `gap_ns` between the kept intervals of a thread. `in_intervals` is what all
/// its kept intervals have.
pub fn between(thread: &ThreadAccounts, in_intervals: &Accounts, gap_ns: u64) -> Accounts {
    let left =
        |(account, ns): (Account, u64)| (account, ns.saturating_sub(in_intervals.get(account)));
    let gaps: Accounts = thread.accounts.iter().map(left).collect();
    let all = gaps.total();
    let on_cpu = gaps.iter().filter(|(account, _)| is_on_cpu(*account));
    on_cpu.map(|(account, ns)| (account, part_of(ns, gap_ns, all))).collect()
}

/// True if samples of the run say which thread they are of.
pub(crate) fn has_threads(run: &Run) -> bool {
    run.sums.paths.iter().any(|path| path.sampled && path.tid != 0)
}

/// The samples of one thread, where samples say which thread they are of.
pub fn samples_of_thread(whole: &Run, tid: u32) -> Option<Vec<PathSum>> {
    let own = |path: &&PathSum| path.sampled && path.tid == tid;
    has_threads(whole).then(|| whole.sums.paths.iter().filter(own).cloned().collect())
}

/// The samples of the processes of `part`, as many of each account as the part has of its time.
pub fn samples(whole: &Run, part: &Run) -> Vec<PathSum> {
    let (in_whole, in_part) = (by_process(whole), by_process(part));
    let sampled = whole.sums.paths.iter().filter(|path| path.sampled);
    let of_part = sampled.filter_map(|path| {
        let key = (path.tgid, path.account);
        let (all, ns) = (*in_whole.get(&key)?, *in_part.get(&key)?);
        let (count, ns) = (part_of(path.count, ns, all), part_of(path.ns, ns, all));
        (ns > 0).then(|| PathSum { count, ns, max_ns: path.max_ns.min(ns), ..path.clone() })
    });
    of_part.collect()
}

fn by_process(run: &Run) -> BTreeMap<(u32, Account), u64> {
    let mut times = BTreeMap::<_, u64>::new();
    for thread in &run.threads {
        for (account, ns) in thread.accounts.iter().filter(|(account, _)| is_on_cpu(*account)) {
            let sum = times.entry((thread.tgid, account)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    times
}
