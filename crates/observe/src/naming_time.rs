//! How long files may be opened for, and their symbols read, when all stacks are named at the end.
//!
//! A process can have mapped thousands of files, on thousands of mounts, and its user can have many
//! such processes. A whole host takes a second or two.

use std::collections::HashMap;
use std::time::Duration;

/// For the processes of one user, so that nobody takes the names of others.
const OF_A_USER: Duration = Duration::from_secs(10);
const OF_ALL: Duration = Duration::from_secs(30);

/// What was spent.
#[derive(Debug, Default)]
pub struct NamingTime {
    users: HashMap<u32, Option<u32>>,
    spent: HashMap<Option<u32>, Duration>,
}

impl NamingTime {
    /// What is left for a process; `user` says who it runs as, and is asked once.
    pub fn left(&mut self, tgid: u32, user: impl FnOnce() -> Option<u32>) -> Duration {
        let user = *self.users.entry(tgid).or_insert_with(user);
        let of_user = self.spent.get(&user).copied().unwrap_or_default();
        let of_all = self.spent.values().sum();
        OF_A_USER.saturating_sub(of_user).min(OF_ALL.saturating_sub(of_all))
    }

    /// Takes what was spent on a process.
    pub fn spend(&mut self, tgid: u32, time: Duration) {
        if !time.is_zero() {
            let user = self.users.get(&tgid).copied().flatten();
            *self.spent.entry(user).or_default() += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_takes_no_time_of_others_and_all_have_an_end() {
        let mut time = NamingTime::default();
        let of = |tgid: u32| move || Some(tgid / 10);
        assert_eq!(time.left(11, of(11)), OF_A_USER);
        time.spend(11, OF_A_USER - Duration::from_secs(1));
        assert_eq!(time.left(12, of(12)), Duration::from_secs(1), "of the same user");
        assert_eq!(time.left(21, of(21)), OF_A_USER);
        for tgid in [21, 31] {
            time.left(tgid, of(tgid));
            time.spend(tgid, OF_A_USER);
        }
        assert_eq!(time.left(41, of(41)), Duration::from_secs(1), "of all");
        time.spend(41, Duration::from_secs(2));
        assert_eq!(time.left(51, of(51)), Duration::ZERO);
    }
}
