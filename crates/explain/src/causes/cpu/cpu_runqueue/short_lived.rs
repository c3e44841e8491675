//! Processes that live for a moment only: what competes for the CPUs may be starting and ending them.

use model::{Account, Accounts, Syscall, ThreadAccounts};

use crate::case::Case;
use crate::cause::Claim;
use crate::text::{count, duration, percent};

/// A program that does something of its own takes longer than this.
const MOMENT_NS: u64 = 100_000_000;
/// Fewer a second are no load by their number.
const LEAST_PER_SECOND: u64 = 20;
/// Calls that start or end a process.
const CALLS: [&str; 7] = ["execve", "execveat", "clone", "clone3", "fork", "vfork", "exit_group"];

const FIX: &str = "Start fewer processes: what the shell or the language can do itself (string \
                   operations instead of cut, sed and tr; reading a file instead of cat), one call for \
                   many items (xargs), or one helper that stays (a coprocess, a pool); or start fewer \
                   at a time.";

/// Those that began and ended while they were recorded.
pub struct ShortLived {
    processes: u64,
    per_second: u64,
    /// From the first moment to the last, all together.
    lived_ns: u64,
    /// On a CPU, by what they ran.
    ran: Accounts,
    /// All threads on a CPU.
    all_ns: u64,
}

impl ShortLived {
    /// `None` where they had less than half of the CPU time of all.
    pub fn of(case: &Case) -> Option<ShortLived> {
        let run = case.run;
        let is_such = |thread: &&ThreadAccounts| {
            !thread.alive && thread.first_ns > run.header.started_ns && thread.wall_ns() < MOMENT_NS
        };
        let mut all = ShortLived {
            processes: 0,
            per_second: 0,
            lived_ns: 0,
            ran: Accounts::new(),
            all_ns: case.accounts.sum_of(Account::is_running),
        };
        for thread in run.threads.iter().filter(is_such) {
            let ran = thread.accounts.iter().filter(|(account, _)| account.is_running());
            ran.for_each(|(account, ns)| all.ran.add(account, ns));
            if thread.tid == thread.tgid {
                all.processes += 1;
                all.lived_ns = all.lived_ns.saturating_add(thread.wall_ns());
            }
        }
        let length = u128::from(run.length_ns().max(1));
        all.per_second = (u128::from(all.processes) * 1_000_000_000 / length) as u64;
        let are_most = all.ran.total() > 0 && all.ran.total() >= all.all_ns / 2;
        (are_most && all.per_second >= LEAST_PER_SECOND).then_some(all)
    }

    /// `1,240 processes a second, which live for 3.40 ms on average, wait for each other's CPU`.
    pub fn title(&self) -> String {
        format!(
            "{} processes a second, which live for {} on average, wait for each other's CPU",
            count(self.per_second),
            duration(self.lived_ns / self.processes.max(1))
        )
    }

    pub fn explain(&self, claim: &mut Claim) {
        let is_call = |account: Account| match account {
            Account::Syscall(call) => {
                CALLS.iter().any(|name| Syscall::named(name).is_some_and(|known| known == call))
            }
            _ => false,
        };
        let ran_ns = self.ran.total();
        // Where calls were not recorded, and no sample divides the time, it may be more.
        let at_least = if self.ran.get(Account::Running) > 0 { "at least " } else { "" };
        claim.trigger(format!(
            "{} processes began and ended within the recording, and had {} of the {} that all threads \
             ran: {at_least}{} of it in execve, clone and exit_group",
            count(self.processes),
            percent(ran_ns, self.all_ns),
            duration(self.all_ns),
            percent(self.ran.sum_of(is_call), ran_ns)
        ));
        claim.fix = Some(FIX);
    }
}
