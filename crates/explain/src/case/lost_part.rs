//! How much of each account was lost: in sum what `lost` says of one account or word.

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked};

use crate::case::answers::Answers;
use crate::case::lock_word::LockWord;
use crate::case::lost::{Class, FILE_LOCK, LOCK_ACCOUNTS, class};
use crate::case::stops::{STOPPED, Stops};

/// The lost part of each account. Stops that interrupted waits for work are idle, and so are waits for
/// file locks with which others wait for work. Of a process's
/// futex time no more than its lock words and the stops of its JVM account for is lost; the rest,
/// waits that have not ended included, is idle.
pub fn lost_part(
    processes: &BTreeMap<u32, Accounts>,
    locks: &[LockWord],
    stops: &Stops,
    safepoints: &BTreeMap<u32, u64>,
    file_locks_for_work: &BTreeMap<u32, u64>,
) -> Accounts {
    let mut lost = Accounts::new();
    for (tgid, accounts) in processes {
        for (account, ns) in accounts.iter().filter(|(a, _)| class(*a) == Class::Lost) {
            let idle = match account {
                STOPPED => stops.idle_part(ns),
                FILE_LOCK => file_locks_for_work.get(tgid).copied().unwrap_or(0).min(ns),
                _ => 0,
            };
            lost.add(account, ns - idle);
        }
        for account in LOCK_ACCOUNTS {
            let in_locks = locks
                .iter()
                .filter(|word| word.tgid == *tgid && word.account == account)
                .fold(0u64, |sum, word| sum.saturating_add(word.lost_ns()));
            let stood_still = match account {
                Account::Blocked(Blocked::Futex) => safepoints.get(tgid).copied().unwrap_or(0),
                _ => 0,
            };
            lost.add(account, in_locks.saturating_add(stood_still).min(accounts.get(account)));
        }
    }
    lost
}

/// What threads waited for answers, at most what their accounts have.
pub fn in_answers(processes: &BTreeMap<u32, Accounts>, answers: &[Answers]) -> Accounts {
    let mut by_process = BTreeMap::<(u32, Account), u64>::new();
    for one in answers {
        let sum = by_process.entry((one.tgid, one.account)).or_default();
        *sum = sum.saturating_add(one.lost_ns());
    }
    let known = |tgid: &u32, account| processes.get(tgid).map_or(0, |all| all.get(account));
    by_process
        .iter()
        .map(|((tgid, account), ns)| (*account, (*ns).min(known(tgid, *account))))
        .collect()
}
