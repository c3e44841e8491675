//! The largest stacks in the lost time that no finding explains, for a person to read.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Account, LostStack};

use crate::case::Case;
use crate::case::lost::{Class, class};

/// Accounts that are looked into, the largest.
const ACCOUNTS: usize = 4;
/// Stacks of each.
const STACKS: usize = 3;

/// The largest stacks of the largest of these accounts: of all sleeps in the kernel and of the
/// samples where these were recorded, else of the intervals kept whole.
pub fn stacks(case: &Case, unexplained: &[(Account, u64)]) -> Vec<LostStack> {
    let accounts = unexplained.iter().filter(|(a, _)| class(*a) != Class::Unknown);
    accounts.take(ACCOUNTS).flat_map(|(account, _)| of_account(case, *account)).collect()
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
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Blocked;

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
    fn nothing_unexplained_has_no_stacks() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        assert!(crate::explain(&run).unexplained_stacks.is_empty());
    }
}
