//! Waiting by trying again.

use serde::{Deserialize, Serialize};

use crate::sums::add_each;
use crate::{Account, Blocked, Sum, Syscall};

/// Calls of a process that were refused, and made again after a sleep that the thread chose: so it
/// waited for what the call wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Process.
    pub tgid: u32,
    /// The call.
    pub call: Syscall,
    /// With which error it was refused, positive: 11 is EAGAIN, 16 EBUSY.
    pub errno: i32,
    /// What it asked for: the inode behind its descriptor, a number of its name, for other calls the
    /// first argument.
    pub object: u64,
    /// True if that was room in a pipe.
    #[serde(default)]
    pub pipe: bool,
    /// The path of a file that it was to make, or the address that it was to connect to, if it asked for
    /// that; as the program wrote it, and of a long one the beginning.
    #[serde(default)]
    pub name: Option<String>,
    /// In which the sleeps are: for a time, or in poll or a futex until a time was over.
    #[serde(default = "sleep")]
    pub account: Account,
    /// How often it was made again.
    pub count: u64,
    /// Sleeps between a try and the next, in ns.
    pub ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The part of `ns` after which the call was not refused in the end; 0 in older runs.
    #[serde(default)]
    pub won_ns: u64,
}

const EEXIST: i32 = 17;

fn sleep() -> Account {
    Account::Blocked(Blocked::TimerSleep)
}

impl Retry {
    /// It asked for a file to be made that is there already: so a lock file is asked for.
    pub fn is_of_lock_file(&self) -> bool {
        self.errno == EEXIST
    }

    /// It asked for a connection.
    pub fn is_of_connection(&self) -> bool {
        self.call.is_one_of(&["connect"])
    }

    /// It asked for something by name: `object` is no inode.
    pub fn is_by_name(&self) -> bool {
        self.is_of_lock_file() || self.is_of_connection()
    }
}

impl Sum for Retry {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.call, self.errno, self.object, self.account)
    }

    fn amount(&self) -> u64 {
        self.ns
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn ns(&self) -> u64 {
        self.ns.max(self.max_ns).max(self.won_ns)
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), None]
    }

    fn generalize(&mut self) {
        self.object = 0;
        self.name = None;
    }

    fn add(&mut self, other: &Self) {
        add_each!(self, other, [count, ns, won_ns]);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}
