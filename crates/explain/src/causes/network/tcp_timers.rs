//! Waits that ended when a timer of TCP had sent a segment again.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Blocked, Outlier, OutlierKind, Run, Socket, SocketAddress, SocketKind, Timeout,
    TimeoutKind,
};

use crate::case::Case;

pub const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);
pub const POLL: Account = Account::Blocked(Blocked::Poll);
const SEND: Account = Account::Blocked(Blocked::SocketSend);
/// How long a wait has to last until a probe for this to be no ordinary one: a probe that follows
/// several segments comes after two round trips, one that follows a single one as late as the
/// timer.
const LATE_PROBE_NS: u64 = 100_000_000;

/// A connection of the target, seen from one end.
pub struct End<'a> {
    pub socket: &'a Socket,
    /// What it sent again.
    pub segments: u64,
    pub timeouts: Vec<Timeout>,
}

/// A wait that ended when a timer had sent a segment again.
pub struct Wait<'a> {
    pub outlier: &'a Outlier,
    pub account: Account,
    pub inode: u64,
    pub timeout: Timeout,
    /// The thread waited on the very socket that sent it.
    pub own: bool,
    /// It waited for several descriptors.
    pub guessed: bool,
}

/// The target's connections that sent anything again, by inode.
pub fn ends(run: &Run) -> BTreeMap<u64, End<'_>> {
    let mut ends = BTreeMap::<u64, End<'_>>::new();
    for second in run.sockets.queues.iter().filter(|s| s.socket.kind == SocketKind::Tcp) {
        let socket = &second.socket;
        let new = || End { socket, segments: 0, timeouts: Vec::new() };
        let end = ends.entry(socket.inode).or_insert_with(new);
        end.socket = socket;
        end.segments += second.resent.segments;
        end.timeouts.extend(&second.resent.timeouts);
    }
    ends
}

/// Waits that a timer ended, each once. Of two threads that wait for each other, the one whose own
/// socket sent the segment is the one that lost the time.
pub fn waits<'a>(case: &Case<'a>, ends: &BTreeMap<u64, End>) -> Vec<Wait<'a>> {
    let by_address: BTreeMap<SocketAddress, &End> =
        ends.values().map(|end| (end.socket.address, end)).collect();
    let mut waits = Vec::new();
    for account in [RECEIVE, POLL, SEND] {
        for outlier in case.outliers_in(account).filter(|o| o.kind == OutlierKind::Syscall) {
            let wait = |inode, timeout, own, guessed| Wait {
                outlier,
                account,
                inode,
                timeout,
                own,
                guessed,
            };
            if let Some(end) = ends.get(&outlier.object) {
                let own = last(outlier, &end.timeouts);
                let other = end.socket.address.mirrored().and_then(|a| by_address.get(&a));
                let other = other.and_then(|end| last(outlier, &end.timeouts));
                match (own, other) {
                    (Some(own), other) if other.is_none_or(|other| other.at_ns < own.at_ns) => {
                        waits.push(wait(outlier.object, own, true, false));
                    }
                    (_, Some(other)) => waits.push(wait(outlier.object, other, false, false)),
                    _ => {}
                }
            } else if outlier.object == 0 {
                let of_process = ends.values().filter(|end| end.socket.tgid == outlier.tgid);
                let ended = of_process.filter_map(|end| Some((end, last(outlier, &end.timeouts)?)));
                if let Some((end, timeout)) = ended.max_by_key(|(_, timeout)| timeout.at_ns) {
                    waits.push(wait(end.socket.inode, timeout, true, true));
                }
            }
        }
    }
    let of_own: BTreeSet<u64> = waits.iter().filter(|w| w.own).map(|w| w.timeout.at_ns).collect();
    waits.retain(|wait| wait.own || !of_own.contains(&wait.timeout.at_ns));
    waits
}

/// The last timeout in a wait, if it can have ended it: the wait lasted as long as the timer was
/// set, and soon after it was over.
fn last(outlier: &Outlier, timeouts: &[Timeout]) -> Option<Timeout> {
    let end = outlier.end_ns();
    let inside = |t: &&Timeout| t.at_ns > outlier.start_ns && t.at_ns <= end;
    let timers = timeouts.iter().filter(|timeout| timeout.kind != TimeoutKind::Connecting);
    let last = timers.filter(inside).max_by_key(|timeout| timeout.at_ns)?;
    let before = last.at_ns - outlier.start_ns;
    let is_late = match last.kind {
        TimeoutKind::Probe => before >= LATE_PROBE_NS,
        _ => before >= last.after_ns / 5 * 4,
    };
    (is_late && end - last.at_ns <= before / 4).then_some(*last)
}
