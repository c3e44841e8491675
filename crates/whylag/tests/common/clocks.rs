//! Sums of accounts that clocks outside of whylag know, too.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use model::{Account, Accounts, Run, ThreadAccounts};

/// The thread of that name.
#[track_caller]
pub fn named<'a>(run: &'a Run, comm: &str) -> &'a ThreadAccounts {
    run.threads.iter().find(|thread| thread.comm == comm).unwrap_or_else(|| {
        panic!("no thread {comm}: {:?}", run.threads.iter().map(|t| &t.comm).collect::<Vec<_>>())
    })
}

/// On a CPU as the kernel's clocks see it: they do not take interrupts out, but what the hypervisor
/// stole (update_rq_clock_task).
pub fn on_cpu(accounts: &Accounts) -> u64 {
    let interrupted = |a| matches!(a, Account::HardIrq | Account::SoftIrq);
    accounts.sum_of(|account| account.is_running() || interrupted(account))
}

pub fn for_cpu(accounts: &Accounts) -> u64 {
    accounts.sum_of(Account::is_waiting_for_cpu)
}

/// The kernel's clocks of one thread, in ns: how long it has run, and been ready without a CPU.
#[derive(Clone, Copy)]
struct Clocks {
    ran: u64,
    queued: u64,
}

impl Clocks {
    /// Of /proc/PID/task/TID.
    fn of(task: &str) -> Option<Clocks> {
        let text = fs::read_to_string(format!("{task}/schedstat")).ok()?;
        let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
        Some(Clocks { ran: numbers.next()?, queued: numbers.next()? })
    }
}

/// Threads that live on while they are recorded, and what their clocks said before.
pub struct Outside {
    began: Instant,
    /// By the number that the recording has for the thread: where /proc has it, and its clocks.
    before: BTreeMap<u32, (String, Clocks)>,
}

/// Clocks are read one after the other.
const SLACK_NS: u64 = 2_000_000;

impl Outside {
    /// All threads of these processes.
    pub fn of(pids: impl IntoIterator<Item = u32>) -> Outside {
        let tasks = |pid: u32| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        let tids = pids.into_iter().flat_map(|pid| {
            tasks(pid).flatten().filter_map(|task| {
                let tid = task.file_name().to_str()?.parse().ok()?;
                Some((tid, task.path().to_str()?.to_owned()))
            })
        });
        Outside::at(tids)
    }

    /// Threads by the number that the recording has for them, and where /proc has them.
    pub fn at(threads: impl IntoIterator<Item = (u32, String)>) -> Outside {
        let clocks = threads.into_iter().filter_map(|(tid, task)| {
            let clocks = Clocks::of(&task)?;
            Some((tid, (task, clocks)))
        });
        Outside { before: clocks.collect(), began: Instant::now() }
    }

    /// Each of them was recorded for `least` at least and for no longer than this took, ran and
    /// queued for a CPU no longer than its clocks say, and slept for the rest.
    #[track_caller]
    pub fn agrees(&self, run: &Run, least: Duration) {
        let (least, most) = (least.as_nanos() as u64, self.began.elapsed().as_nanos() as u64);
        assert!(!self.before.is_empty());
        for (tid, (task, before)) in &self.before {
            let thread = run.threads.iter().find(|thread| thread.tid == *tid);
            let thread = thread.unwrap_or_else(|| panic!("{task} was not recorded"));
            let accounts = &thread.accounts;
            let recorded = accounts.total();
            assert!((least..=most).contains(&recorded), "{task}: {recorded} ns of {least}..{most}");
            let Some(after) = Clocks::of(task) else { continue };
            let (ran, queued) = (after.ran - before.ran, after.queued - before.queued);
            assert!(on_cpu(accounts) <= ran + SLACK_NS, "{task} ran for {ran} ns: {accounts:?}");
            let asleep = accounts.sum_of(|account| matches!(account, Account::Blocked(_)));
            let rest = least.saturating_sub(ran + queued + SLACK_NS);
            assert!(asleep >= rest, "{task} slept for {rest} ns at least: {accounts:?}");
        }
    }
}
