//! Time spent waiting for mmap_lock, split by who held it: the process itself or another.
//!
//! Two causes share this split, so that no nanosecond is explained twice.

use std::collections::HashMap;

use model::{Account, Accounts, Blocked, HoldSum, part_of};

use crate::case::sums::Case;
use crate::text::duration;

/// Waiting to read an address space: page faults, /proc readers.
pub const READ: Account = Account::Blocked(Blocked::MmapLockRead);
/// Waiting to change one: mmap, munmap, brk.
pub const WRITE: Account = Account::Blocked(Blocked::MmapLockWrite);

/// Kernel threads that walk address spaces by themselves; they read for no one.
const KERNEL_WALKERS: [&str; 2] = ["khugepaged", "ksmd"];

/// The waiting for mmap_lock of all watched processes.
#[derive(Default)]
pub struct Split {
    /// While threads of the process itself held it.
    pub own: Accounts,
    /// While another process held it.
    pub foreign: Accounts,
    /// All, holder known or not.
    pub waited_ns: u64,
    /// Overlap of waits and known holds. More than `waited_ns` if readers held it together.
    pub overlap_ns: u64,
    /// Waiting to which a hold is known.
    pub known_ns: u64,
}

impl Split {
    /// What of the division was measured, and what was inferred from that.
    pub fn in_words(&self) -> String {
        let rest = self.waited_ns.saturating_sub(self.known_ns);
        let known = duration(self.known_ns);
        match rest {
            0 => format!("the holder is known for all of the {known}"),
            rest => format!(
                "the holder is known for {known} of {}; the other {} is taken to have been held by \
                 the same in the same proportion",
                duration(self.waited_ns),
                duration(rest)
            ),
        }
    }
}

/// True for both accounts of mmap_lock.
pub fn is_mmap_lock(account: Account) -> bool {
    account == READ || account == WRITE
}

/// A thread of the process that waited held the lock.
pub fn is_own(hold: &HoldSum) -> bool {
    hold.holder_tgid == hold.tgid
}

/// A known process other than the one that waited held the lock.
pub fn is_foreign(hold: &HoldSum) -> bool {
    !is_own(hold) && hold.holder_tgid != 0 && !KERNEL_WALKERS.contains(&hold.holder_comm.as_str())
}

/// Divides each process's waiting in proportion to the holds that overlapped it. Waiting without
/// any known hold is in neither part.
pub fn split(case: &Case) -> Split {
    let mut split = Split::default();
    let mut holds = HashMap::<u32, Vec<&HoldSum>>::new();
    for hold in &case.run.sums.holds {
        holds.entry(hold.tgid).or_default().push(hold);
    }
    for (tgid, accounts) in case.processes() {
        let holds = holds.get(&tgid).map(Vec::as_slice).unwrap_or_default();
        for account in [READ, WRITE] {
            let waited = accounts.get(account);
            if waited == 0 {
                continue;
            }
            let overlap = |which: &dyn Fn(&HoldSum) -> bool| {
                holds
                    .iter()
                    .filter(|hold| hold.waiter_write == (account == WRITE) && which(hold))
                    .fold(0u64, |sum, hold| sum.saturating_add(hold.ns))
            };
            let all = overlap(&|_| true);
            let own = part_of(waited, overlap(&is_own), all);
            let foreign = part_of(waited, overlap(&is_foreign), all);
            split.own.add(account, own);
            split.foreign.add(account, foreign.min(waited - own));
            split.waited_ns = split.waited_ns.saturating_add(waited);
            split.overlap_ns = split.overlap_ns.saturating_add(all);
            split.known_ns = split.known_ns.saturating_add(all.min(waited));
        }
    }
    split
}

/// The holds that `which` accepts, readers and writers waiting taken together, longest first.
pub fn holders(case: &Case, which: fn(&HoldSum) -> bool) -> Vec<HoldSum> {
    let mut sums: Vec<HoldSum> = Vec::new();
    for hold in case.run.sums.holds.iter().filter(|hold| which(hold) && hold.ns > 0) {
        let same = sums.iter_mut().find(|sum| {
            (sum.tgid, sum.holder_tgid, sum.holder_call, sum.holder_write)
                == (hold.tgid, hold.holder_tgid, hold.holder_call, hold.holder_write)
        });
        match same {
            Some(sum) => {
                sum.count = sum.count.saturating_add(hold.count);
                sum.ns = sum.ns.saturating_add(hold.ns);
                sum.max_ns = sum.max_ns.max(hold.max_ns);
            }
            None => sums.push(hold.clone()),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
    sums
}

/// Where the lock was held: `mmap (to write)`, `a page fault (to read)`.
pub fn place(hold: &HoldSum) -> String {
    let call = hold.holder_call.map_or("a page fault".to_owned(), |call| call.to_string());
    format!("{call} (to {})", if hold.holder_write { "write" } else { "read" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, hold};

    #[test]
    fn waiting_is_divided_by_holder_and_what_is_unknown_is_in_neither() {
        let run = RunBuilder::new()
            .thread(1, 10, &[(WRITE, 1000), (Account::User, 1000)])
            .hold(hold(10, 10, true, 300))
            .hold(hold(10, 77, true, 100))
            .hold(hold(10, 0, true, 100))
            .build();
        let split = split(&Case::new(&run));
        assert_eq!(split.own.get(WRITE), 600);
        assert_eq!(split.foreign.get(WRITE), 200);
        assert_eq!((split.waited_ns, split.overlap_ns), (1000, 500));
        assert!(split.in_words().starts_with("the holder is known for 500 ns of 1.00 us"));
    }

    #[test]
    fn readers_and_writers_are_divided_by_their_own_holders() {
        let reading = HoldSum { waiter_write: false, ..hold(10, 77, true, 50) };
        let run = RunBuilder::new()
            .thread(1, 10, &[(WRITE, 1000), (READ, 400)])
            .hold(hold(10, 10, true, 300))
            .hold(reading)
            .build();
        let split = split(&Case::new(&run));
        assert_eq!((split.own.get(WRITE), split.foreign.get(WRITE)), (1000, 0));
        assert_eq!((split.own.get(READ), split.foreign.get(READ)), (0, 400));
    }

    #[test]
    fn holders_of_the_same_kind_are_summed() {
        let run = RunBuilder::new()
            .hold(hold(10, 10, true, 300))
            .hold(HoldSum { waiter_write: false, ..hold(10, 10, true, 200) })
            .hold(hold(10, 77, true, 900))
            .build();
        let own = holders(&Case::new(&run), is_own);
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].ns, 500);
    }
}
