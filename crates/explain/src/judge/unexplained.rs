//! The largest stacks in the lost time that no finding explains, for a person to read.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Account, Finding, LeadingAccount, LostStack};

use super::finding::share;
use crate::case::Case;
use crate::case::lost::{Class, class};

/// Accounts that are looked into, the largest.
const ACCOUNTS: usize = 4;
/// Stacks of each.
const STACKS: usize = 3;

/// The largest stacks of the largest of these accounts: of all sleeps in the kernel and of the
/// samples where these were recorded, else of the intervals kept whole.
pub fn stacks(case: &Case, unexplained: &[(Account, u64)]) -> Vec<LostStack> {
    let accounts = unexplained.iter().filter(|(account, ns)| match class(*account) {
        Class::Unknown => false,
        // The stacks are of the whole account, most of which was waiting for work.
        Class::Idle => *ns >= case.accounts.get(*account) / 2,
        Class::Work | Class::Lost => true,
    });
    accounts.take(ACCOUNTS).flat_map(|(account, _)| of_account(case, *account)).collect()
}

/// Less than this part of the wall time is no headline.
const LEADS: u64 = 20;

/// The largest account of lost or unknown time, if no finding explains more than it.
pub fn leading(
    case: &Case,
    unexplained: &[(Account, u64)],
    first: Option<&Finding>,
) -> Option<LeadingAccount> {
    // Between the intervals that a part is made of nothing is known.
    let unknown = if case.scope().is_some() { 0 } else { case.accounts.get(Account::Unaccounted) };
    let unknown = (Account::Unaccounted, unknown);
    let leads = |(account, ns): &&(Account, u64)| {
        *ns > 0 && (*ns >= case.wall_ns / LEADS || is_all_that_one_does(case, *account, *ns))
    };
    let all = unexplained.iter().chain([&unknown]).filter(leads);
    let (account, ns) = *all.max_by_key(|(_, ns)| *ns)?;
    let is_beaten = first.is_some_and(|first| !first.minor && first.lost_ns >= ns);
    let is_packets = first.is_some_and(|first| first.lost_ns == 0);
    if is_beaten || is_packets {
        return None;
    }
    let wall_share = share(ns, case.wall_ns);
    Some(LeadingAccount { account, call: main_call(case, account), ns, wall_share })
}

/// Nothing explains the account, and one thread had it for half of the recording: beside many that wait
/// for work that is a small part of all their time.
fn is_all_that_one_does(case: &Case, account: Account, ns: u64) -> bool {
    let half = case.run.length_ns() / 2;
    class(account) == Class::Lost
        && !account.is_waiting_for_cpu()
        && ns >= case.accounts.get(account) / 10 * 9
        && case.run.threads.iter().any(|thread| thread.accounts.get(account) >= half.max(1))
}

/// The system call that has most of an account's time, by the sleeps in it.
fn main_call(case: &Case, account: Account) -> Option<String> {
    let mut calls = BTreeMap::<_, u64>::new();
    for path in case.run.sums.paths.iter().filter(|path| path.account == account) {
        let sum = calls.entry(path.call).or_default();
        *sum = sum.saturating_add(case.ns_of(path));
    }
    let all = calls.values().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    let (call, ns) = calls.into_iter().max_by_key(|(_, ns)| *ns)?;
    call.filter(|_| ns > all / 2).map(|call| call.to_string())
}

fn of_account(case: &Case, account: Account) -> Vec<LostStack> {
    let run = case.run;
    let kept = run.sums.stack_sums.iter().filter(|sum| sum.account == account);
    let kept = kept.map(|sum| (sum.kernel, sum.user, sum.count, sum.ns));
    let paths = run.sums.paths.iter().filter(|path| path.account == account);
    let paths = paths.map(|path| (path.kernel, path.user, path.count, case.ns_of(path)));
    // Paths have the shorter ones too, but sleeps have their user side only among those kept.
    let (kept, paths) = (by_stack(kept), by_stack(paths));
    let total = |sums: &[Sum]| sums.iter().fold(0u64, |all, sum| all.saturating_add(sum.3));
    let largest = if total(&paths) > total(&kept).saturating_mul(2) { paths } else { kept };
    let named = largest.into_iter().take(STACKS).map(|(kernel, user, count, ns)| LostStack {
        account,
        count,
        ns,
        kernel: case.labels(kernel),
        user: case.labels(user),
    });
    named.filter(|stack| !(stack.kernel.is_empty() && stack.user.is_empty())).collect()
}

/// Kernel stack, user stack, count, time.
type Sum = (Option<model::StackId>, Option<model::StackId>, u64, u64);

/// One sum for each pair of stacks, largest first.
fn by_stack(sums: impl Iterator<Item = Sum>) -> Vec<Sum> {
    let mut stacks = BTreeMap::<_, (u64, u64)>::new();
    for (kernel, user, count, ns) in sums {
        let sum = stacks.entry((kernel, user)).or_default();
        *sum = (sum.0.saturating_add(count), sum.1.saturating_add(ns));
    }
    let mut stacks: Vec<Sum> =
        stacks.into_iter().map(|((kernel, user), (n, ns))| (kernel, user, n, ns)).collect();
    stacks.sort_by_key(|(_, _, _, ns)| Reverse(*ns));
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, runner, wait};
    use model::{Blocked, ChainEnd, WaitSum};

    const ASLEEP: Account = Account::Blocked(Blocked::Uninterruptible);

    #[test]
    fn the_rest_is_shown_by_account_and_by_stack_the_largest_first() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (ASLEEP, 2 * SECOND), (Account::Spin, SECOND)])
            .slept_path(
                10,
                ASLEEP,
                "close",
                &["synchronize_rcu", "my_driver_release"],
                30,
                SECOND / 2,
            )
            .slept_path(10, ASLEEP, "ioctl", &["msleep", "my_driver_ioctl"], 3, SECOND)
            .sampled_path(10, Account::Spin, &["native_queued_spin_lock_slowpath"], 7)
            .build();
        let answer = crate::explain(&run);
        let stacks: Vec<_> = answer
            .unexplained_stacks
            .iter()
            .map(|stack| (stack.account, stack.count, stack.ns, stack.kernel[0].as_str()))
            .collect();
        assert_eq!(
            stacks,
            [
                (ASLEEP, 3, SECOND, "msleep"),
                (ASLEEP, 30, SECOND / 2, "synchronize_rcu"),
                (Account::Spin, 7, SECOND, "native_queued_spin_lock_slowpath"),
            ]
        );
    }

    #[test]
    fn the_largest_account_leads_if_nothing_explains_it() {
        let asleep = Account::Blocked(Blocked::Uninterruptible);
        let queued = Account::RunnablePreempted;
        let run = |ns| {
            RunBuilder::new()
                .thread(10, 10, &[(USER, SECOND), (asleep, ns), (queued, SECOND)])
                .runner(runner(10, 77, 900, SECOND))
                .slept_path(10, asleep, "ioctl", &["msleep", "vfs_ioctl"], 30, ns)
                .build()
        };
        let answer = crate::explain(&run(40 * SECOND));
        let leading = answer.leading_account.unwrap();
        assert_eq!((leading.account, leading.ns), (asleep, 40 * SECOND));
        assert_eq!(leading.call.as_deref(), Some("ioctl"));
        assert!((leading.wall_share - 40.0 / 42.0).abs() < 1e-9);
        let answer = crate::explain(&run(SECOND / 2));
        assert_eq!(answer.findings[0].cause, "cpu-runqueue");
        assert_eq!(answer.leading_account, None);
    }

    /// As of a pool of a hundred: what the one thread that works is stuck in is 2 % of their time.
    #[test]
    fn what_one_thread_does_nothing_but_leads_however_many_others_wait_for_work() {
        let run = |ns| {
            let mut run =
                RunBuilder::new().thread(10, 10, &[(USER, 4 * SECOND - ns), (ASLEEP, ns)]);
            for tid in 11..60 {
                run = run.thread(tid, 10, &[(FUTEX, 4 * SECOND)]);
            }
            run.build()
        };
        let leading = |ns| crate::explain(&run(ns)).leading_account.map(|leading| leading.account);
        assert_eq!((leading(3 * SECOND), leading(SECOND)), (Some(ASLEEP), None));
    }

    #[test]
    fn stacks_of_an_account_that_is_mostly_waiting_for_work_are_none_of_lost_time() {
        let stacks = |lost_ns| {
            let lock = WaitSum {
                lock_like: 10,
                waker_tgid: 10,
                ends: [(ChainEnd::RunQueue, lost_ns)].into(),
                ..wait(10, FUTEX, 0xbeef, 10, lost_ns)
            };
            let run = RunBuilder::new()
                .thread(10, 10, &[(USER, SECOND), (FUTEX, 3 * SECOND)])
                .wait(lock)
                .slept_path(10, FUTEX, "futex", &["futex_do_wait"], 100, 3 * SECOND);
            let answer = crate::explain(&run.build());
            assert_eq!(answer.unexplained, [(FUTEX, lost_ns)]);
            answer.unexplained_stacks.len()
        };
        assert_eq!((stacks(SECOND / 50), stacks(2 * SECOND)), (0, 1));
    }

    #[test]
    fn nothing_unexplained_has_no_stacks() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        assert!(crate::explain(&run).unexplained_stacks.is_empty());
    }
}
