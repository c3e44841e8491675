//! Waits that ended when a timer of TCP had sent a segment again.

use std::cmp::Reverse;
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
/// What is not known of a probe: the least that the timer is set to (TCP_RTO_MIN).
const PROBE_NS: u64 = 200_000_000;

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
    /// How long it waited for timers: since the first of those that followed each other was set.
    pub ns: u64,
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
            let asleep = outlier.breakdown.get(account);
            let wait = |inode, ended: Ended, own, guessed| Wait {
                outlier,
                account,
                inode,
                timeout: ended.by,
                ns: outlier.end_ns().saturating_sub(ended.since).min(asleep),
                own,
                guessed,
            };
            if let Some(end) = ends.get(&outlier.object) {
                let own = ended(outlier, &end.timeouts);
                let other = end.socket.address.mirrored().and_then(|a| by_address.get(&a));
                let other = other.and_then(|end| ended(outlier, &end.timeouts));
                match (own, other) {
                    (Some(own), other)
                        if other.as_ref().is_none_or(|other| other.by.at_ns < own.by.at_ns) =>
                    {
                        waits.push(wait(outlier.object, own, true, false));
                    }
                    (_, Some(other)) => waits.push(wait(outlier.object, other, false, false)),
                    _ => {}
                }
            } else if outlier.object == 0 {
                let of_process = ends.values().filter(|end| end.socket.tgid == outlier.tgid);
                let found =
                    of_process.filter_map(|end| Some((end, ended(outlier, &end.timeouts)?)));
                let found = found.filter(|(_, ended)| ended.fills(outlier));
                if let Some((end, ended)) = found.max_by_key(|(_, ended)| ended.by.at_ns) {
                    waits.push(wait(end.socket.inode, ended, true, true));
                }
            }
        }
    }
    let of_own: BTreeSet<u64> = waits.iter().filter(|w| w.own).map(|w| w.timeout.at_ns).collect();
    waits.retain(|wait| wait.own || !of_own.contains(&wait.timeout.at_ns));
    waits
}

/// Timers that followed each other, and ended a wait.
struct Ended {
    /// The last of them.
    by: Timeout,
    /// When the first was set, or the wait began if that was later.
    since: u64,
}

impl Ended {
    /// The wait began when the timer was set: its thread had just sent what was lost. One that
    /// waits for anything on many descriptors did so long before.
    fn fills(&self, outlier: &Outlier) -> bool {
        self.since - outlier.start_ns <= length_ns(&self.by) / 5
    }
}

/// The last timeout in a wait, if it can have ended it: the wait lasted as long as the timer was
/// set, and soon after it was over.
fn ended(outlier: &Outlier, timeouts: &[Timeout]) -> Option<Ended> {
    let end = outlier.end_ns();
    let inside = |t: &&Timeout| t.at_ns > outlier.start_ns && t.at_ns <= end;
    let timers = timeouts.iter().filter(|timeout| timeout.kind != TimeoutKind::Connecting);
    let mut inside: Vec<&Timeout> = timers.filter(inside).collect();
    inside.sort_by_key(|timeout| Reverse(timeout.at_ns));
    let last = *inside.first()?;
    let before = last.at_ns - outlier.start_ns;
    let is_late = match last.kind {
        TimeoutKind::Probe => before >= LATE_PROBE_NS,
        _ => before >= last.after_ns / 5 * 4,
    };
    if !is_late || end - last.at_ns > before.min(length_ns(last)) / 4 {
        return None;
    }
    let mut since = last.at_ns.saturating_sub(length_ns(last));
    for earlier in &inside[1..] {
        // The next is set when this one fires.
        if earlier.at_ns + length_ns(earlier) / 5 < since {
            break;
        }
        since = since.min(earlier.at_ns.saturating_sub(length_ns(earlier)));
    }
    Some(Ended { by: *last, since: since.max(outlier.start_ns) })
}

/// What a timer was set to.
fn length_ns(timeout: &Timeout) -> u64 {
    if timeout.after_ns == 0 { PROBE_NS } else { timeout.after_ns }
}
