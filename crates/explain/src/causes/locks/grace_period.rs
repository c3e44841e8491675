//! Sleeps until an RCU grace period is over: until every CPU has passed through a state in which
//! it can hold no reference to what is about to be freed. That takes some milliseconds, however
//! idle the machine is, and the caller sleeps in state D with nobody to blame.

use model::{Account, Blocked, PathSum};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;

/// The account of these sleeps.
pub const ASLEEP: Account = Account::Blocked(Blocked::Uninterruptible);
/// Functions that wait for a grace period.
const WAITS: [&str; 4] =
    ["synchronize_rcu", "synchronize_rcu_normal", "synchronize_rcu_expedited", "__wait_rcu_gp"];

/// Time asleep for grace periods on the paths that `which` accepts.
pub fn waited(case: &Case, which: impl Fn(&PathSum) -> bool) -> PathTime {
    case.time_through(&WAITS, |path| !path.sampled && path.account == ASLEEP && which(path))
}

/// The process that was asleep longest so.
pub fn main_process(case: &Case, which: impl Fn(&PathSum) -> bool) -> Option<u32> {
    case.main_of(&WAITS, |path| !path.sampled && path.account == ASLEEP && which(path))
}

/// The longest of these paths on one line.
pub fn path(case: &Case, which: impl Fn(&PathSum) -> bool) -> Option<String> {
    case.path_in_words(&WAITS, |path| !path.sampled && path.account == ASLEEP && which(path))
}

/// What else was slept for uninterruptibly, besides the `claimed` time.
pub fn others(case: &Case, claimed: u64) -> u64 {
    case.accounts.get(ASLEEP).saturating_sub(claimed)
}
