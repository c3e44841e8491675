//! Waits for answers: a thread has sent something to another thread of this host, by a socket, and
//! waits for what comes back. Unlike a server that waits for the next request it has nothing else to
//! do, so the time is lost, and what the other one did meanwhile says why.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Account, ChainEnd, Run};

use crate::case::chain_ends::ChainEnds;

/// The waits of one process for answers of another.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Process that waited.
    pub tgid: u32,
    /// Process that answered.
    pub peer_tgid: u32,
    /// Its name.
    pub peer: String,
    /// In what.
    pub account: Account,
    /// Waits.
    pub count: u64,
    /// Time asleep in them.
    pub ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// By what the peer did meanwhile.
    pub ends: ChainEnds,
}

impl Answers {
    /// The part in which a recorded thread was at the end: what is beyond is not known to be slow.
    pub fn lost_ns(&self) -> u64 {
        self.ends.part_of(self.ns, ChainEnd::is_recorded)
    }
}

/// Of a run, the longest first.
pub fn answers(run: &Run) -> Vec<Answers> {
    let mut sums = BTreeMap::<(u32, u32, Account), Answers>::new();
    for wait in run.sums.waits.iter().filter(|wait| wait.asked && wait.waker_tgid != 0) {
        let sum =
            sums.entry((wait.tgid, wait.waker_tgid, wait.account)).or_insert_with(|| Answers {
                tgid: wait.tgid,
                peer_tgid: wait.waker_tgid,
                peer: wait.waker_comm.clone(),
                account: wait.account,
                count: 0,
                ns: 0,
                max_ns: 0,
                ends: ChainEnds::default(),
            });
        sum.count = sum.count.saturating_add(wait.count);
        sum.ns = sum.ns.saturating_add(wait.ns);
        sum.max_ns = sum.max_ns.max(wait.max_ns);
        sum.ends.add(wait);
    }
    let mut sums: Vec<_> = sums.into_values().collect();
    sums.sort_by_key(|sum| Reverse(sum.lost_ns()));
    sums
}
