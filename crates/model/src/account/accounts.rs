//! Sums of time by account, and parts of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Account;

/// Nanoseconds by account. The sum of all entries is the wall time they cover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accounts(BTreeMap<Account, u64>);

impl Accounts {
    /// No time in any account.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `ns` to `account`; nothing is kept for 0. Like all sums here it stops at `u64::MAX`.
    pub fn add(&mut self, account: Account, ns: u64) {
        if ns > 0 {
            let sum = self.0.entry(account).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// Adds every entry of `other`.
    pub fn merge(&mut self, other: &Accounts) {
        for (account, ns) in other.iter() {
            self.add(account, ns);
        }
    }

    /// Nanoseconds in `account`.
    pub fn get(&self, account: Account) -> u64 {
        self.0.get(&account).copied().unwrap_or(0)
    }

    /// Nanoseconds in all accounts that `which` accepts.
    pub fn sum_of(&self, which: impl Fn(Account) -> bool) -> u64 {
        self.iter()
            .filter(|(account, _)| which(*account))
            .fold(0, |sum, (_, ns)| sum.saturating_add(ns))
    }

    /// The account that a thread's own code is in: `running`, which has the kernel's part, too, where
    /// system calls were not recorded for most of its time on a CPU.
    pub fn own_code(&self) -> Account {
        match self.get(Account::Running) > self.get(Account::User) {
            true => Account::Running,
            false => Account::User,
        }
    }

    /// Nanoseconds in all accounts: the wall time.
    pub fn total(&self) -> u64 {
        self.sum_of(|_| true)
    }

    /// The entries in account order.
    pub fn iter(&self) -> impl Iterator<Item = (Account, u64)> + '_ {
        self.0.iter().map(|(account, ns)| (*account, *ns))
    }

    /// The entries, largest first.
    pub fn largest_first(&self) -> Vec<(Account, u64)> {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        entries
    }
}

impl FromIterator<(Account, u64)> for Accounts {
    fn from_iter<I: IntoIterator<Item = (Account, u64)>>(entries: I) -> Self {
        let mut accounts = Accounts::new();
        for (account, ns) in entries {
            accounts.add(account, ns);
        }
        accounts
    }
}

/// `ns * part / whole` rounded down: what falls to a part when time is spread evenly. Nothing of an
/// empty whole; at most `ns`, as `part` is taken as `whole` where it is larger.
pub fn part_of(ns: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    (u128::from(ns) * u128::from(part.min(whole)) / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_sum() {
        let mut a: Accounts = [(Account::User, 5), (Account::Stolen, 7)].into_iter().collect();
        let b: Accounts = [(Account::User, 1), (Account::HardIrq, 2)].into_iter().collect();
        a.merge(&b);
        assert_eq!(a.total(), 15);
        assert_eq!(a.largest_first()[0], (Account::Stolen, 7));
    }

    #[test]
    fn a_part_of_a_time_is_rounded_down_and_never_more_than_the_time() {
        assert_eq!(part_of(100, 1, 3), 33);
        assert_eq!(part_of(100, 5, 3), 100);
        assert_eq!(part_of(100, 1, 0), 0);
        assert_eq!(part_of(u64::MAX, u64::MAX - 1, u64::MAX), u64::MAX - 1);
    }
}
