//! Connections that were not made at once: at which sockets, to whom, and who waited for them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use model::{Account, Blocked, Message, Outlier, OutlierKind, QueueSecond, TimeoutKind};

use crate::case::Case;
use crate::case::cut_waits::cut_waits;
use crate::case::requests::kept;
use crate::case::slowest::cost;
use crate::case::spans::{Span, union, within_all};
use crate::cause::OfRequests;

pub(super) const CONNECT: Account = Account::Blocked(Blocked::SocketConnect);
/// The first SYN is sent again after 1 s, which one 8th may be off.
const RETRIED_NS: u64 = 800_000_000;
/// A time limit that is shorter may be meant for a peer that is near.
const LIMIT_NS: u64 = 100_000_000;
/// What looks see of a connect with such a limit: they come every 20 ms, and find a new socket after 100 ms or so.
const SEEN_NS: u64 = LIMIT_NS / 5;
/// Of connect: EINPROGRESS is that of a socket with a limit for sends, ETIMEDOUT of TCP's own, EHOSTUNREACH of one
/// that nobody in its network has.
const GAVE_UP: [i64; 3] = [-115, -110, -113];

/// A socket that is to be connected: by which process, and to whom.
struct Attempt {
    of: (u32, SocketAddr),
    /// When its SYN was sent again, and what the timer was set to.
    syns: Vec<(u64, u64)>,
    /// From the first look that found it so to the last.
    seen: Option<Span>,
}

impl Attempt {
    /// `gave_up` are processes that gave up connects: of these a shorter time is enough.
    fn is_unanswered(&self, gave_up: &BTreeSet<u32>) -> bool {
        let least_ns = if gave_up.contains(&self.of.0) { SEEN_NS } else { RETRIED_NS };
        !self.syns.is_empty() || self.seen.is_some_and(|seen| seen.ns() >= least_ns)
    }

    /// For how long it was to be connected at least.
    fn least_ns(&self) -> u64 {
        self.time().map_or(0, Span::ns)
    }

    /// From its SYN to when it was last known to have no answer.
    fn time(&self) -> Option<Span> {
        let first = self.syns.iter().map(|(at, after)| at.saturating_sub(*after));
        let last = self.syns.iter().map(|(at, _)| *at);
        Some(Span {
            from_ns: first.chain(self.seen.map(|seen| seen.from_ns)).min()?,
            to_ns: last.chain(self.seen.map(|seen| seen.to_ns)).max()?,
        })
    }
}

/// Who is connected to.
#[derive(Default)]
pub(super) struct Peer {
    pub sockets: u64,
    /// That were sent again.
    pub syns: u64,
    /// For how long at least these were to be connected, together, and the one that was it for longest.
    pub ns: u64,
    pub longest_ns: u64,
}

/// How a wait for a connection ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There was a connection, or an error.
    Answered,
    /// Whoever waited gave up.
    GaveUp,
    Unknown,
}

/// A wait for a connection that was not made at once.
pub(super) struct Wait<'a> {
    pub tgid: u32,
    pub ns: u64,
    /// `None` if it goes on when the recording ends.
    pub ended: Option<&'a Outlier>,
    pub end: End,
    /// By an edge of the recording.
    pub cut: bool,
}

/// By process and address.
pub(super) type Peers = BTreeMap<(u32, SocketAddr), Peer>;

/// Connects that had no answer.
pub(super) struct Unanswered<'a> {
    pub peers: Peers,
    pub waits: Vec<Wait<'a>>,
    attempts: Vec<Attempt>,
}

/// `is_own_full`: so was a queue of this host, so that connects to it are no matter of these.
pub(super) fn unanswered<'a>(case: &Case<'a>, is_own_full: bool) -> Unanswered<'a> {
    let mut waits = long_waits(case);
    let gave_up = waits.iter().filter(|wait| wait.end == End::GaveUp);
    let gave_up: BTreeSet<u32> = gave_up.map(|wait| wait.tgid).collect();
    let mut attempts = attempts(case, is_own_full);
    attempts.retain(|attempt| attempt.is_unanswered(&gave_up));
    let mut peers = Peers::new();
    for attempt in &attempts {
        let peer = peers.entry(attempt.of).or_default();
        peer.sockets += 1;
        peer.syns += attempt.syns.len() as u64;
        peer.ns = peer.ns.saturating_add(attempt.least_ns());
        peer.longest_ns = peer.longest_ns.max(attempt.least_ns());
    }
    let tgids: BTreeSet<u32> = peers.keys().map(|(tgid, _)| *tgid).collect();
    waits.retain(|wait| tgids.contains(&wait.tgid));
    Unanswered { peers, waits, attempts }
}

impl Unanswered<'_> {
    /// What it takes of requests: connects of the same process that began after a request had come, and ended
    /// before its answer. Also the time in which there was such a request and such a connect.
    pub fn of_requests(&self, case: &Case) -> Option<(OfRequests, u64)> {
        let times = |message: &Message| {
            let whole = Span { from_ns: message.t0_ns, to_ns: message.end_ns };
            let tgid = message.at_socket.as_ref()?.tgid;
            let own = self.attempts.iter().filter(|attempt| attempt.of.0 == tgid);
            let times = own.filter_map(Attempt::time);
            let is_within = |time: &Span| within_all(*time, &[whole]) == time.ns();
            Some(union(&times.filter(is_within).collect::<Vec<_>>()))
        };
        let taken = |message: &Message| {
            times(message)
                .unwrap_or_default()
                .into_iter()
                .map(Span::ns)
                .fold(0, u64::saturating_add)
        };
        let slowest = cost(case.slowest(), |one| taken(&one.message));
        let is_of_sockets = |m: &&Message| case.run.messages.is_from_sockets(m.program);
        let all: Vec<&Message> = kept(case.run).filter(is_of_sockets).collect();
        let sum = |of: &dyn Fn(&Message) -> u64| {
            all.iter().map(|message| of(message)).fold(0, u64::saturating_add)
        };
        let of_all = sum(&taken) as f64 / sum(&Message::total_ns).max(1) as f64;
        let spans: Vec<Span> = all.iter().filter_map(|message| times(message)).flatten().collect();
        let ns = union(&spans).into_iter().map(Span::ns).fold(0, u64::saturating_add);
        (slowest.ns > 0).then_some((OfRequests { slowest, of_all }, ns))
    }
}

/// Sockets that were seen to be connected.
fn attempts(case: &Case, is_own_full: bool) -> Vec<Attempt> {
    let mut sockets = BTreeMap::<u64, Attempt>::new();
    for second in &case.run.sockets.queues {
        let Some(remote) = second.socket.address.remote.map(canonical) else { continue };
        if is_own_full && is_own(second, remote) {
            continue;
        }
        let of = (second.socket.tgid, remote);
        let new = || Attempt { of, syns: Vec::new(), seen: None };
        let socket = sockets.entry(second.socket.inode).or_insert_with(new);
        let timeouts = second.resent.timeouts.iter();
        let syns = timeouts.filter(|timeout| timeout.kind == TimeoutKind::Connecting);
        socket.syns.extend(syns.map(|timeout| (timeout.at_ns, timeout.after_ns)));
        // Of the last second it is the whole.
        let seen = second.connecting;
        let seen = seen.map(|seen| Span { from_ns: seen.since_ns, to_ns: seen.last_ns });
        socket.seen = seen.or(socket.seen);
    }
    sockets.into_values().collect()
}

/// Both ends are of this host.
fn is_own(second: &QueueSecond, remote: SocketAddr) -> bool {
    let local = second.socket.address.local;
    remote.ip().is_loopback() || local.is_some_and(|local| canonical(local).ip() == remote.ip())
}

/// As one of IPv4, if it is such an address for a socket of IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Waits for a connection that were longer than a SYN that is answered takes, or were given up.
fn long_waits<'a>(case: &Case<'a>) -> Vec<Wait<'a>> {
    let cut = cut_waits(case.run, CONNECT);
    let ended = cut.iter().filter_map(|wait| wait.ended);
    let ended: BTreeSet<(u32, u64)> = ended.map(|o| (o.tid, o.start_ns)).collect();
    let is_long = |o: &&Outlier| o.breakdown.get(CONNECT) >= LIMIT_NS;
    let mut calls = BTreeMap::<u32, Vec<&Outlier>>::new();
    for call in case.outliers_in(CONNECT).filter(is_long) {
        if call.kind == OutlierKind::Syscall {
            calls.entry(call.tid).or_default().push(call);
        }
    }
    let kept = case.outliers_in(CONNECT).filter(is_long);
    let mut waits: Vec<Wait> = kept
        .filter(|o| o.kind == OutlierKind::OffCpu)
        .map(|o| Wait {
            tgid: o.tgid,
            ns: o.breakdown.get(CONNECT),
            ended: Some(o),
            end: end(o, calls.get(&o.tid).map_or(&[], Vec::as_slice)),
            cut: ended.contains(&(o.tid, o.start_ns)),
        })
        .filter(|wait| wait.ns >= RETRIED_NS || wait.end == End::GaveUp)
        .collect();
    let open = cut.iter().filter(|wait| wait.ended.is_none() && wait.ns >= LIMIT_NS);
    waits.extend(open.map(|wait| Wait {
        tgid: wait.thread.tgid,
        ns: wait.ns,
        ended: None,
        end: End::Unknown,
        cut: true,
    }));
    waits
}

/// By the result of the call around it, one of its thread's, or by who ended it.
fn end(wait: &Outlier, calls: &[&Outlier]) -> End {
    let is_around =
        |call: &&&Outlier| call.start_ns <= wait.start_ns && wait.end_ns() <= call.end_ns();
    let call = calls.iter().find(is_around).and_then(|outlier| outlier.syscall);
    let result =
        call.and_then(|call| Some((call.call.is_one_of(&["poll", "ppoll"]), call.result?)));
    match result {
        Some((true, 0)) => End::GaveUp,
        Some((true, 1..)) | Some((false, 0)) => End::Answered,
        Some((false, error)) if GAVE_UP.contains(&error) => End::GaveUp,
        _ if wait.is_ended_by_timer() => End::GaveUp,
        _ => End::Unknown,
    }
}
