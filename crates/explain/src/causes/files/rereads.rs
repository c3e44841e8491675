//! Pages that were read from a disk again: who had put them out of the page cache.

use std::cmp::Reverse;

use model::{Evictor, PageRead, part_of};

use crate::case::Case;
use crate::causes::files::disk_waits::writes;

/// Pages read in calls that read.
#[derive(Debug, Default)]
pub(super) struct Rereads<'a> {
    /// All of them.
    pub pages: u64,
    /// Of those: of files that somebody had put as many pages out of the page cache.
    pub again: u64,
    /// By whom, the most first.
    pub evictors: Vec<(&'a PageRead, &'a Evictor)>,
}

impl<'a> Rereads<'a> {
    /// Those of a run.
    pub fn of(case: &Case<'a>) -> Rereads<'a> {
        let mut rereads = Rereads::default();
        let in_calls = |read: &&PageRead| read.call.is_some_and(|call| !writes(call));
        for read in case.run.sums.page_reads.iter().filter(in_calls) {
            rereads.pages = rereads.pages.saturating_add(read.pages);
            if let Some(evictor) = &read.evictor {
                rereads.again = rereads.again.saturating_add(read.pages);
                rereads.evictors.push((read, evictor));
            }
        }
        rereads.evictors.sort_by_key(|(read, _)| Reverse(read.pages));
        rereads
    }

    /// They are what the disk was read for in the first place.
    pub fn is_most(&self) -> bool {
        self.again > 0 && self.again >= self.pages.div_ceil(2)
    }

    /// The part of a time in reads that is theirs; nothing where they are not the most.
    pub fn part_of(&self, ns: u64) -> u64 {
        if self.is_most() { part_of(ns, self.again, self.pages) } else { 0 }
    }
}
