//! Waiting by trying again.

use serde::{Deserialize, Serialize};

use crate::sums::adds_up;
use crate::{Sum, Syscall};

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
    /// What it asked for: the inode behind its descriptor, for other calls the first argument.
    pub object: u64,
    /// True if that was room in a pipe.
    #[serde(default)]
    pub pipe: bool,
    /// How often it was made again.
    pub count: u64,
    /// Sleeps between a try and the next, in ns; all in the account of sleeps for a time.
    pub ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Sum for Retry {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.call, self.errno, self.object)
    }

    adds_up!(count, ns, max_ns);

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), None]
    }

    fn generalize(&mut self) {
        self.object = 0;
    }
}
