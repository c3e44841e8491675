//! Where a thread's wall time went: each nanosecond in exactly one account.

mod accounts;
mod blocked;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Syscall;

pub use self::accounts::{Accounts, part_of};
pub use self::blocked::Blocked;

/// What a thread was doing with a nanosecond of its wall time.
///
/// The text form (`running:user`, `running:mmap`, `blocked:lock:mmap_lock:write`) is the same on
/// the command line, in JSON and in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS), ts(type = "string"))]
#[serde(into = "String", try_from = "String")]
pub enum Account {
    /// On a CPU in user mode. On-CPU time of page faults is in here too: the kernel offers no
    /// tracepoint at the end of a fault.
    User,
    /// On a CPU in the kernel, in this system call.
    Syscall(Syscall),
    /// On a CPU in the kernel outside any system call: a kernel thread, or a thread that exits.
    Kernel,
    /// On a CPU, user or kernel not known: the system call probes are off, or the state was
    /// sampled from /proc.
    Running,
    /// On a CPU, spinning for a contended kernel spinlock.
    Spin,
    /// The thread's CPU served a hardware interrupt or inter-processor interrupt meanwhile.
    HardIrq,
    /// The thread's CPU served softirqs meanwhile (its own, too: loopback packets it sends).
    SoftIrq,
    /// The hypervisor ran something else, by the steal clock of the CPU the thread was on.
    Stolen,
    /// Woken, waiting for a CPU.
    RunnableWakeup,
    /// Preempted or yielded, waiting for a CPU.
    RunnablePreempted,
    /// Taken off the CPU because its cgroup's CPU quota was used up.
    Throttled,
    /// Asleep until something happens.
    Blocked(Blocked),
    /// Not known: before the thread's first event, or a state that could not be read.
    Unaccounted,
}

/// A text that names no account.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no account")]
pub struct ParseAccountError(String);

impl Account {
    /// On a CPU, working for the thread itself.
    pub fn is_running(self) -> bool {
        matches!(
            self,
            Account::User
                | Account::Syscall(_)
                | Account::Kernel
                | Account::Running
                | Account::Spin
        )
    }

    /// On a run queue, be it since a wakeup or a preemption.
    pub fn is_runnable(self) -> bool {
        matches!(self, Account::RunnableWakeup | Account::RunnablePreempted)
    }

    /// Runnable or throttled: ready to run, not on a CPU.
    pub fn is_waiting_for_cpu(self) -> bool {
        self.is_runnable() || self == Account::Throttled
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::User => f.write_str("running:user"),
            Account::Syscall(call) => write!(f, "running:{call}"),
            Account::Kernel => f.write_str("running:kernel"),
            Account::Running => f.write_str("running"),
            Account::Spin => f.write_str("running:spinlock"),
            Account::HardIrq => f.write_str("hard_irq"),
            Account::SoftIrq => f.write_str("softirq"),
            Account::Stolen => f.write_str("stolen"),
            Account::RunnableWakeup => f.write_str("runnable:wakeup"),
            Account::RunnablePreempted => f.write_str("runnable:preempted"),
            Account::Throttled => f.write_str("throttled"),
            Account::Blocked(kind) => write!(f, "blocked:{}", kind.name()),
            Account::Unaccounted => f.write_str("unaccounted"),
        }
    }
}

impl FromStr for Account {
    type Err = ParseAccountError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseAccountError(s.to_owned());
        Ok(match s {
            "running:user" => Account::User,
            "running:kernel" => Account::Kernel,
            "running" => Account::Running,
            "running:spinlock" => Account::Spin,
            "hard_irq" => Account::HardIrq,
            "softirq" => Account::SoftIrq,
            "stolen" => Account::Stolen,
            "runnable:wakeup" => Account::RunnableWakeup,
            "runnable:preempted" => Account::RunnablePreempted,
            "throttled" => Account::Throttled,
            "unaccounted" => Account::Unaccounted,
            _ => {
                if let Some(name) = s.strip_prefix("running:") {
                    Account::Syscall(name.parse().map_err(|_| unknown())?)
                } else if let Some(name) = s.strip_prefix("blocked:") {
                    Account::Blocked(name.parse().map_err(|_| unknown())?)
                } else {
                    return Err(unknown());
                }
            }
        })
    }
}

impl From<Account> for String {
    fn from(account: Account) -> String {
        account.to_string()
    }
}

impl TryFrom<String> for Account {
    type Error = ParseAccountError;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_account_survives_its_text_form() {
        let mut all = vec![
            Account::User,
            Account::Kernel,
            Account::Running,
            Account::Spin,
            Account::HardIrq,
            Account::SoftIrq,
            Account::Stolen,
            Account::RunnableWakeup,
            Account::RunnablePreempted,
            Account::Throttled,
            Account::Unaccounted,
        ];
        all.extend(Blocked::ALL.map(Account::Blocked));
        all.extend((0..500).map(|n| Account::Syscall(Syscall(n))));
        for account in all {
            assert_eq!(account.to_string().parse::<Account>().unwrap(), account);
        }
        assert!("blocked:nothing".parse::<Account>().is_err());
    }
}
