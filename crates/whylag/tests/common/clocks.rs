//! Sums of accounts that clocks outside of whylag know, too.

use model::{Account, Accounts, Run, ThreadAccounts};

/// The thread of that name.
#[track_caller]
pub fn named<'a>(run: &'a Run, comm: &str) -> &'a ThreadAccounts {
    run.threads.iter().find(|thread| thread.comm == comm).unwrap_or_else(|| {
        panic!("no thread {comm}: {:?}", run.threads.iter().map(|t| &t.comm).collect::<Vec<_>>())
    })
}

/// On a CPU as the kernel's clocks see it: they do not take interrupts out.
pub fn on_cpu(accounts: &Accounts) -> u64 {
    let interrupted = |a| matches!(a, Account::HardIrq | Account::SoftIrq | Account::Stolen);
    accounts.sum_of(|account| account.is_running() || interrupted(account))
}

pub fn for_cpu(accounts: &Accounts) -> u64 {
    accounts.sum_of(Account::is_waiting_for_cpu)
}
