//! How long threads waited behind holders that were themselves off the CPU.

use model::{Account, Accounts, Blocked, Outlier, OutlierKind};

use crate::case::sums::Case;
use crate::case::wait_chains::waited_for;
use crate::text::duration;

/// Time that victims waited behind holders of some kind.
#[derive(Debug, Default)]
pub struct BehindHolders {
    /// The victims' accounts.
    pub accounts: Accounts,
    /// Waits.
    pub count: u64,
    /// The longest such wait, in words from the victim to the end of its chain.
    pub longest_chain: Option<String>,
}

impl<'a> Case<'a> {
    /// Time that victims which `victim` accepts waited for a lock (or for room) while the one that
    /// ended the wait, or the one that it waited for in turn, was in an account that `holder`
    /// accepts. Only time that counts as lost, and only as far as both were recorded.
    pub fn behind_holders(
        &self,
        victim: impl Fn(&Outlier) -> bool,
        holder: impl Fn(&Outlier, Account) -> bool,
    ) -> BehindHolders {
        let mut behind = BehindHolders::default();
        let mut longest = 0;
        let sleeps = |o: &&Outlier| o.kind == OutlierKind::OffCpu && victim(o);
        for outlier in self.run.outliers.iter().filter(sleeps).filter(|o| self.is_lost(o)) {
            let Some(account) = outlier.blocked.map(Account::Blocked) else { continue };
            let until = outlier.end_ns();
            let mut ns = 0u64;
            for end in self.wait_chains.ends(outlier, outlier.start_ns, until) {
                let Some(last) = end.holders.last() else { continue };
                let why = main_account(last);
                if !holder(last, why) {
                    continue;
                }
                ns = ns.saturating_add(end.ns);
                if end.ns > longest {
                    longest = end.ns;
                    behind.longest_chain = Some(in_words(outlier, &end.holders, why));
                }
            }
            if ns > 0 {
                behind.accounts.add(account, ns);
                behind.count += 1;
            }
        }
        behind
    }

    /// Where the evidence of the longest chains stops: the waker of a lost wait that was not
    /// recorded, by name.
    pub fn stops_at(&self, victim: impl Fn(&Outlier) -> bool) -> Option<String> {
        let sleeps = |o: &&Outlier| o.kind == OutlierKind::OffCpu && victim(o);
        let longest =
            self.run.outliers.iter().filter(sleeps).filter(|o| self.is_lost(o)).find(|o| {
                waited_for(o).is_some_and(|tid| self.whole().threads.iter().all(|t| t.tid != tid))
            })?;
        let waker = longest.waker.as_ref()?;
        Some(format!(
            "{} (tid {}, pid {}) ended the longest wait and was not recorded: what it did \
             meanwhile is known with --follow, or with -a",
            waker.comm, waker.tid, waker.tgid
        ))
    }

    /// A futex wait is lost only on a word that behaves like a lock.
    fn is_lost(&self, outlier: &Outlier) -> bool {
        outlier.blocked != Some(Blocked::Futex)
            || self.locks.iter().any(|w| w.tgid == outlier.tgid && w.address == outlier.object)
    }
}

/// What an interval was mostly spent in.
fn main_account(outlier: &Outlier) -> Account {
    outlier.breakdown.largest_first().first().map_or(Account::Unaccounted, |(account, _)| *account)
}

fn in_words(victim: &Outlier, holders: &[&Outlier], why: Account) -> String {
    let mut text = format!(
        "{} (tid {}) waited {} in {}",
        victim.comm,
        victim.tid,
        duration(victim.duration_ns),
        main_account(victim)
    );
    for (depth, holder) in holders.iter().enumerate() {
        let account = if depth + 1 == holders.len() { why } else { main_account(holder) };
        text += &format!(
            " <- {} (tid {}) {account} for {}",
            holder.comm,
            holder.tid,
            duration(holder.duration_ns)
        );
        if let Some(runner) = holder.ran_instead.first() {
            text += &format!(" while {} (tid {}) ran", runner.comm, runner.tid);
            if runner.realtime > 0 {
                text += &format!(" at real-time priority {}", runner.realtime);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, wait};
    use model::WaitSum;

    const QUEUED: Account = Account::RunnablePreempted;
    const FILE_LOCK: Account = Account::Blocked(Blocked::FileLock);

    fn is_queued(_: &Outlier, account: Account) -> bool {
        account == QUEUED
    }

    fn locked(builder: RunBuilder) -> RunBuilder {
        builder.wait(WaitSum { lock_like: 1, ..wait(10, FUTEX, 0x10, 1, 100) })
    }

    #[test]
    fn a_wait_is_divided_by_what_its_holder_did() {
        // 10 waits 0..100 for 11, which is preempted 20..90 of it.
        let run = locked(RunBuilder::new())
            .thread(10, 10, &[(FUTEX, SECOND)])
            .interval(10, FUTEX, 0, 100, Some(11))
            .interval(11, QUEUED, 20, 70, None)
            .build();
        let behind = Case::new(&run).behind_holders(|_| true, is_queued);
        assert_eq!((behind.accounts.get(FUTEX), behind.count), (70, 1));
        assert!(behind.longest_chain.unwrap().contains("<- thread-11 (tid 11) runnable:preempted"));
    }

    #[test]
    fn the_walk_goes_on_to_the_end_and_counts_once() {
        // 10 waits for 11, 11 waits 10..90 for 12, 12 is preempted 30..80.
        let run = locked(RunBuilder::new())
            .thread(10, 10, &[(FUTEX, SECOND)])
            .interval(10, FUTEX, 0, 100, Some(11))
            .interval(11, FILE_LOCK, 10, 80, Some(12))
            .interval(12, QUEUED, 30, 50, None)
            .build();
        let case = Case::new(&run);
        let of_10 = |o: &Outlier| o.tid == 10;
        assert_eq!(case.behind_holders(of_10, is_queued).accounts.get(FUTEX), 50);
        let behind_lock = case.behind_holders(of_10, |_, account| account == FILE_LOCK);
        assert_eq!(behind_lock.accounts.get(FUTEX), 30);
        assert_eq!(case.behind_holders(|_| true, is_queued).accounts.get(FILE_LOCK), 50);
    }

    #[test]
    fn a_circle_ends() {
        let run = locked(RunBuilder::new())
            .interval(10, FUTEX, 0, 100, Some(11))
            .interval(11, FUTEX, 0, 100, Some(10))
            .build();
        assert_eq!(Case::new(&run).behind_holders(|_| true, is_queued).count, 0);
    }

    #[test]
    fn waiting_for_work_is_no_chain() {
        let run = RunBuilder::new()
            .interval(10, FUTEX, 0, 100, Some(11))
            .interval(11, QUEUED, 0, 100, None)
            .build();
        assert_eq!(Case::new(&run).behind_holders(|_| true, is_queued).count, 0);
    }

    #[test]
    fn says_where_the_evidence_stops() {
        let run = locked(RunBuilder::new())
            .thread(10, 10, &[(FUTEX, SECOND)])
            .interval(10, FUTEX, 0, 100, Some(99))
            .build();
        let text = Case::new(&run).stops_at(|_| true).unwrap();
        assert!(text.contains("tid 99") && text.contains("--follow"), "{text}");
    }
}
