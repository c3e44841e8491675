//! Time on a CPU where system calls were not recorded, divided into the program's own code and its calls.
//!
//! The recorder has it in one account then, `running`. What a thread was in whenever its CPU was sampled
//! says what parts of that are; the causes see these parts as accounts, and what rests on them for the most
//! part says so (`confidence`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::{Account, Accounts, PathSum, Run, part_of};

/// Time of samples, ns, by the account that it would be in.
type Parts = BTreeMap<Account, u64>;

/// The run with `running` divided, thread by thread; where a thread has no sample, as its process has it.
pub(crate) fn divided(run: &Run) -> Cow<'_, Run> {
    let mut of_threads = BTreeMap::<(u32, u32), Parts>::new();
    let mut of_processes = BTreeMap::<u32, Parts>::new();
    for path in run.sums.paths.iter().filter(|path| is_of_running(path)) {
        let account = account(path);
        for parts in [
            of_threads.entry((path.tgid, path.tid)).or_default(),
            of_processes.entry(path.tgid).or_default(),
        ] {
            let part = parts.entry(account).or_default();
            *part = part.saturating_add(path.ns);
        }
    }
    if of_processes.is_empty() {
        return Cow::Borrowed(run);
    }
    let mut run = run.clone();
    for thread in &mut run.threads {
        let of_thread = of_threads.get(&(thread.tgid, thread.tid));
        if let Some(parts) = of_thread.or_else(|| of_processes.get(&thread.tgid)) {
            thread.accounts = divide(&thread.accounts, parts);
        }
    }
    for path in run.sums.paths.iter_mut().filter(|path| is_of_running(path)) {
        path.account = account(path);
    }
    Cow::Owned(run)
}

fn is_of_running(path: &PathSum) -> bool {
    path.sampled && path.account == Account::Running
}

/// A page fault is the program's own, as where calls are recorded.
fn account(path: &PathSum) -> Account {
    path.kernel.and(path.call).map_or(Account::User, Account::Syscall)
}

fn divide(accounts: &Accounts, parts: &Parts) -> Accounts {
    let others = accounts.iter().filter(|(account, _)| *account != Account::Running);
    let mut divided: Accounts = others.collect();
    let running = accounts.get(Account::Running);
    let all = parts.values().copied().fold(0, u64::saturating_add);
    let mut left = running;
    for (account, ns) in parts {
        let part = part_of(running, *ns, all).min(left);
        divided.add(*account, part);
        left -= part;
    }
    // What rounding leaves.
    divided.add(Account::User, left);
    divided
}

#[cfg(test)]
mod tests {
    use model::{StackId, Syscall};

    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND};

    const WRITE: Account = Account::Syscall(Syscall(1));

    fn samples(tid: u32, call: Option<Syscall>, kernel: Option<StackId>, count: u64) -> PathSum {
        let ns = count * 5_000_000;
        let account = Account::Running;
        PathSum {
            tgid: 10,
            account,
            call,
            kernel,
            user: None,
            sampled: true,
            tid,
            count,
            ns,
            max_ns: ns,
        }
    }

    /// Thread 11 was sampled in its own code, in a page fault and in write(), thread 12 was not.
    fn run() -> Run {
        let write = Syscall::named("write").unwrap();
        let mut run = RunBuilder::new()
            .thread(11, 10, &[(Account::Running, 2 * SECOND), (FUTEX, SECOND)])
            .thread(12, 10, &[(Account::Running, SECOND)])
            .thread(20, 20, &[(Account::Running, SECOND)])
            .build();
        run.sums.paths = vec![
            samples(11, None, None, 40),
            samples(11, None, Some(StackId(5)), 10),
            samples(11, Some(write), Some(StackId(6)), 50),
        ];
        run
    }

    #[test]
    fn running_is_divided_as_the_samples_are_and_no_nanosecond_is_lost() {
        let run = run();
        let divided = divided(&run);
        let write = Account::Syscall(Syscall::named("write").unwrap());
        let accounts = |n: usize| &divided.threads[n].accounts;
        for (n, whole) in [(0, 2 * SECOND), (1, SECOND)] {
            assert_eq!(accounts(n).get(Account::User), whole / 2);
            assert_eq!(accounts(n).get(write), whole / 2);
            assert_eq!(accounts(n).get(Account::Running), 0);
            assert_eq!(accounts(n).total(), run.threads[n].accounts.total());
        }
        assert_eq!(accounts(2), &run.threads[2].accounts, "nobody sampled it");
        let sampled = |path: &&PathSum| path.account == write;
        assert_eq!(divided.sums.paths.iter().filter(sampled).count(), 1);
    }

    #[test]
    fn a_run_with_all_its_calls_stays_as_it_is() {
        let mut run = run();
        run.sums.paths.iter_mut().for_each(|path| path.account = WRITE);
        assert!(matches!(divided(&run), Cow::Borrowed(_)));
    }

    #[test]
    fn what_rounding_leaves_is_own_code() {
        let parts = BTreeMap::from([(Account::User, 1), (WRITE, 2)]);
        let accounts: Accounts = [(Account::Running, 100)].into_iter().collect();
        let divided = divide(&accounts, &parts);
        assert_eq!((divided.get(WRITE), divided.total()), (66, 100));
    }
}
