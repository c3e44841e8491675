//! One watched thread and its accounts.

use serde::{Deserialize, Serialize};

use crate::{Account, Accounts};

/// A thread under watch. Its key within a run is (`tid`, `first_ns`): tids are reused.
///
/// `accounts.total() == last_ns - first_ns` holds exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadAccounts {
    /// Thread id, in the recorder's pid namespace.
    pub tid: u32,
    /// Thread group (process) id.
    pub tgid: u32,
    /// Name of the thread when last seen.
    pub comm: String,
    /// First moment under watch.
    pub first_ns: u64,
    /// Last moment the accounts cover.
    pub last_ns: u64,
    /// False once the thread has exited.
    pub alive: bool,
    /// The account that was open at `last_ns`.
    pub open: Account,
    /// Where the time from `first_ns` to `last_ns` went.
    pub accounts: Accounts,
    /// Real-time priority when last seen, 1 to 99 (SCHED_FIFO, SCHED_RR, or inherited with a lock);
    /// 100 for SCHED_DEADLINE; 0 for an ordinary thread.
    pub realtime: u8,
    /// Page faults served without I/O, by the kernel's count, since `first_ns`.
    pub minor_faults: u64,
    /// Page faults that needed I/O, by the kernel's count, since `first_ns`.
    pub major_faults: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Times it was preempted.
    pub preemptions: u64,
    /// Times it was moved to another CPU.
    pub migrations: u64,
}

impl ThreadAccounts {
    /// Wall time under watch.
    pub fn wall_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}
