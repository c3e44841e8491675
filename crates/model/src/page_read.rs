//! Reads of files from a disk, and what was in the page cache before.

use serde::{Deserialize, Serialize};

use crate::sums::add_each;
use crate::{Sum, Syscall};

/// Pages that a process read into the page cache in one kind of call, of files that the same one had
/// put out of it.
///
/// The kernel side counts by file: a page that is read is taken for one that had been put out as long
/// as fewer were read since, and for one of whoever put out most that were not read since. Of more than
/// four that put out pages of one file those with the fewest are taken for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRead {
    /// Process.
    pub tgid: u32,
    /// The call; `None` in a page fault.
    pub call: Option<Syscall>,
    /// Who had put them out of the page cache since recording began; `None` if nobody had.
    pub evictor: Option<Evictor>,
    /// One of the files: the last part of its path, of a long one the beginning; empty if it has none.
    pub file: String,
    /// Pages.
    pub pages: u64,
}

/// Who put pages of a file out of the page cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evictor {
    /// Process, recorded or not.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// In which call; `None` for a thread of the kernel (kswapd), and in page faults.
    pub call: Option<Syscall>,
    /// True if it needed the memory (reclaim), false if the call put them out by itself.
    pub reclaim: bool,
}

impl Sum for PageRead {
    fn key(&self) -> impl Serialize {
        let evictor = self.evictor.as_ref().map(|by| (by.tgid, by.call, by.reclaim));
        (self.tgid, self.call, evictor)
    }

    fn amount(&self) -> u64 {
        self.pages
    }

    fn count(&self) -> u64 {
        self.pages
    }

    fn ns(&self) -> u64 {
        0
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), self.evictor.as_mut().map(|by| &mut by.tgid)]
    }

    fn add(&mut self, other: &Self) {
        add_each!(self, other, [pages]);
    }
}
