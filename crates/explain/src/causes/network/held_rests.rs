//! Connections of which the end of what was written waits for an acknowledgement, by looks at their
//! sockets: whoever wrote it may wait for nothing, as a server that has given its answer.

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, QueueSecond, SocketKind, part_of};

use crate::case::Case;
use crate::text::{counted, duration, percent};

const SECOND: u64 = 1_000_000_000;
/// Fewer looks at a connection show nothing.
const FEWEST: u64 = 10;
/// In one of so many looks, at least: a rest may be held for a moment anywhere.
const PART: u64 = 5;
/// In what a process waits for the next request, or the next answer.
const WAITS: [Account; 2] =
    [Account::Blocked(Blocked::Poll), Account::Blocked(Blocked::SocketReceive)];

/// The connections of one process.
#[derive(Debug)]
pub(super) struct HeldRests<'a> {
    pub tgid: u32,
    connections: u64,
    /// Looks at them, and those that found a rest held back.
    looks: u64,
    held: u64,
    /// The same as time, of all connections together.
    pub ns: u64,
    /// The connection that was held back longest.
    longest: (u64, &'a QueueSecond),
}

/// The process whose rests were held longest.
pub(super) fn held_rests<'a>(case: &Case<'a>) -> Option<HeldRests<'a>> {
    let queues = case.run.sockets.queues.iter();
    let mut connections = BTreeMap::<(u32, u64), Vec<&QueueSecond>>::new();
    for second in queues.filter(|second| second.socket.kind == SocketKind::Tcp && second.looks > 0)
    {
        let key = (second.socket.tgid, second.socket.inode);
        connections.entry(key).or_default().push(second);
    }
    let mut processes = BTreeMap::<u32, HeldRests>::new();
    for ((tgid, _), seconds) in connections {
        let sum = |of: fn(&QueueSecond) -> u64| {
            seconds.iter().map(|second| of(second)).fold(0, u64::saturating_add)
        };
        let (looks, held) = (sum(|second| second.looks), sum(|second| second.nagle_looks));
        if looks < FEWEST || held < looks.div_ceil(PART) {
            continue;
        }
        let ns = part_of((seconds.len() as u64 * SECOND).min(case.run.length_ns()), held, looks);
        let new =
            HeldRests { tgid, connections: 0, looks: 0, held: 0, ns: 0, longest: (0, seconds[0]) };
        let all = processes.entry(tgid).or_insert(new);
        all.connections += 1;
        all.looks = all.looks.saturating_add(looks);
        all.held = all.held.saturating_add(held);
        all.ns = all.ns.saturating_add(ns);
        if ns > all.longest.0 {
            all.longest = (ns, seconds[0]);
        }
    }
    processes.into_values().max_by_key(|rests| rests.ns)
}

impl HeldRests<'_> {
    /// What the process waited for meanwhile: the other side, which had not got all it waits for.
    pub(super) fn lost(&self, case: &Case) -> Accounts {
        let mut left = self.ns;
        let mut lost = Accounts::new();
        for account in WAITS {
            let waited = case.process(self.tgid).map_or(0, |accounts| accounts.get(account));
            lost.add(account, waited.min(left));
            left = left.saturating_sub(waited);
        }
        lost
    }

    /// `in 85 % of 600 looks at 4 connections (...) the end of what was written was held back`.
    pub(super) fn in_words(&self) -> String {
        format!(
            "in {} of {} at {} the end of what was written, less than a segment, waited for an \
             acknowledgement, with room in all windows: {} together, on {} alone {}",
            percent(self.held, self.looks),
            counted(self.looks, "look"),
            counted(self.connections, "connection"),
            duration(self.ns),
            self.longest.1.socket,
            duration(self.longest.0)
        )
    }

    /// How many such waits that is at most: Linux delays an acknowledgement by 40 ms at least
    /// (TCP_DELACK_MIN of include/net/tcp.h), and by 200 ms at most.
    pub(super) fn waits(&self) -> u64 {
        self.ns / 40_000_000
    }
}
