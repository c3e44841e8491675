//! nagle-delack: a request in two writes, of which Nagle's algorithm holds the second back until
//! the first is acknowledged, while the other side delays that acknowledgement by 40 ms.
//!
//! # Evidence
//!
//! Waits for an answer of 38 to 52 ms on a connection that nearly always has something in its send
//! queue; most waits longer than 5 ms are of this length; DelayedACKs of the network namespace
//! counts them on the side that delays. Where the writer does not wait for an answer (a server that
//! has given its own), its sockets are sampled: less than one MSS unsent, window open, TCP_NODELAY
//! off, data unacknowledged, in a fifth of the samples of a connection or more. What is claimed is
//! the time that the process waited for the other side.
//!
//! # Without whylag
//!
//!     ss -tino dst ADDRESS                       # unacked, notsent
//!     nstat -az TcpExtDelayedACKs
//!     tcpdump -ni any -ttt port PORT             # 40 ms before a bare acknowledgement
//!
//! # Sources
//!
//! RFC 896; RFC 1122, section 4.2.3.2; tcp(7) (TCP_NODELAY); include/net/tcp.h (TCP_DELACK_MIN).

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, Outlier, OutlierKind, RecorderPart, SocketKind};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::network::held_rests::{HeldRests, held_rests};
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::NAGLE_DELACK,
    title: "Nagle's algorithm waits for a delayed acknowledgement",
    fix: "Send a request with one call (writev, sendmsg, or a buffer), or set TCP_NODELAY on the \
          side that sends it.",
    reproduce: "mysteries/bin/nagle-delack-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Sockets]),
    look_alikes: &[],
    symptom: false,
    examine,
};

const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);
/// The shortest delay of an acknowledgement is 40 ms (TCP_DELACK_MIN), rounded up to a tick.
const DELAYED_NS: std::ops::Range<u64> = 38_000_000..52_000_000;
/// Shorter waits are those of a network and a server at work.
const LONG_NS: u64 = 5_000_000;

/// A connection by process and descriptor.
type Key = (u32, u64);

/// What of it was sent and not taken, over all looks.
#[derive(Default)]
struct Unsent {
    name: String,
    sum: u64,
    looks: u64,
    max: u64,
}

impl Unsent {
    /// Something was waiting to be sent, or acknowledged, nearly always.
    fn is_held_back(&self) -> bool {
        self.max > 0 && self.mean() * 2 >= self.max
    }

    fn mean(&self) -> u64 {
        self.sum.checked_div(self.looks).unwrap_or(0)
    }

    fn in_words(&self) -> String {
        format!(
            "{}: {} bytes not yet acknowledged on average, at most {}",
            self.name,
            count(self.mean()),
            count(self.max)
        )
    }
}

fn examine(case: &Case) -> Verdict {
    let held = held_back(case);
    let seen = Seen::of(case, &held);
    if !seen.is_delayed() {
        return held_rests(case)
            .map(|rests| of_rests(case, &rests, seen.acks))
            .ok_or(seen.absent());
    }
    let mut claim = seen.claim(case);
    seen.evidence(case, &mut claim);
    Ok(claim)
}

/// Waits of a process for answers that came late because its requests were held back.
pub(crate) fn held_answers(case: &Case, tgid: u32) -> Accounts {
    let held = held_back(case);
    let seen = Seen::of(case, &held);
    let delayed = seen.delayed.iter().filter(|wait| seen.is_delayed() && wait.tgid == tgid);
    delayed.map(|wait| (RECEIVE, wait.breakdown.get(RECEIVE))).collect()
}

fn because(what: &str) -> String {
    format!(
        "{what} was sent in several small writes: Nagle's algorithm keeps the later ones until the \
         first is acknowledged, and the other side, without anything to send, delays that"
    )
}

/// Whoever wrote the rest may go on, as a server that has given its answer: the other side waits.
fn of_rests(case: &Case, rests: &HeldRests, acks: u64) -> Claim {
    let process = case.process_name(rests.tgid);
    let title = format!("the end of what {process} sends waits for an acknowledgement");
    let mut claim = Claim::new(title, rests.lost(case), rests.waits());
    claim.takes_idle = true;
    claim.after_answers = true;
    claim.mechanism(format!(
        "what {process} wrote last was held back for {}, over all its connections",
        duration(rests.ns)
    ));
    claim.trigger(because("it"));
    claim.saw(rests.in_words(), "socket iterator, each 20 ms or more");
    claim.saw(counted(acks, "delayed acknowledgement"), "DelayedACKs of the network namespace");
    claim.exclude(
        "a full window",
        "only looks count that found room in the windows of both sides".to_owned(),
    );
    if acks < rests.waits() / 4 {
        claim.doubt(
            0.8,
            "few acknowledgements were delayed in this network namespace: the other side is elsewhere, \
             or far away",
        );
    }
    claim
}

/// Waits for an answer on connections that are held back.
struct Seen<'a> {
    /// All long ones.
    waits: u64,
    /// Those as long as an acknowledgement is delayed.
    delayed: Vec<&'a Outlier>,
    /// Delayed acknowledgements of the host.
    acks: u64,
    /// The connection of the first delayed wait, and the process that waited.
    first: Option<(u32, &'a Unsent)>,
}

impl<'a> Seen<'a> {
    fn of(case: &Case<'a>, held: &'a BTreeMap<Key, Unsent>) -> Seen<'a> {
        let waits: Vec<&Outlier> = case
            .outliers_in(RECEIVE)
            .filter(|o| o.kind == OutlierKind::Syscall && o.duration_ns >= LONG_NS)
            .filter(|o| key(o).is_some_and(|key| held.contains_key(&key)))
            .collect();
        let delayed: Vec<&Outlier> =
            waits.iter().copied().filter(|o| DELAYED_NS.contains(&o.duration_ns)).collect();
        let counter = case.run.counter("net.tcp_delayed_acks");
        Seen {
            waits: waits.len() as u64,
            acks: counter.map_or(0, |counter| counter.growth()),
            first: delayed.iter().find_map(|o| Some((o.tgid, held.get(&key(o)?)?))),
            delayed,
        }
    }

    fn n(&self) -> u64 {
        self.delayed.len() as u64
    }

    /// Most long waits are of this length. Acknowledgements are counted up to the last reading
    /// before the process ended: up to a second less than the waits.
    fn is_delayed(&self) -> bool {
        let n = self.n();
        n > 0 && n * 2 >= self.waits && self.acks * 4 >= n
    }

    fn absent(&self) -> Absent {
        Absent(format!(
            "{} for an answer took 38 to 52 ms while the own request was not yet acknowledged, of \
             {} longer than 5 ms; {} of the host",
            counted(self.n(), "wait"),
            count(self.waits),
            counted(self.acks, "delayed acknowledgement")
        ))
    }

    fn claim(&self, case: &Case) -> Claim {
        let n = self.n();
        let waited: u64 = self.delayed.iter().map(|o| o.breakdown.get(RECEIVE)).sum();
        let lost: Accounts = [(RECEIVE, waited)].into_iter().collect();
        let (process, socket) =
            self.first.map_or(("a process".to_owned(), "tcp"), |(tgid, unsent)| {
                (case.process_name(tgid), unsent.name.as_str())
            });
        let title =
            format!("{process} waits 40 ms for an acknowledgement before it sends the rest");
        let mut claim = Claim::new(title, lost, n);
        claim.takes_idle = true;
        claim.mechanism(format!(
            "{} for an answer on {socket}: {}, mean {}, with a part of the request still in its \
             send queue",
            counted(n, "wait"),
            duration(waited),
            mean(waited, n)
        ));
        claim.trigger(because("the request"));
        claim
    }

    fn evidence(&self, case: &Case, claim: &mut Claim) {
        let of_all = percent(self.n(), self.waits);
        claim.saw(
            format!("{of_all} of the waits longer than 5 ms took 38 to 52 ms"),
            "system calls (sys_enter, sys_exit)",
        );
        if let Some((_, unsent)) = self.first {
            claim.saw(unsent.in_words(), "socket iterator, each 20 ms or more");
        }
        claim.saw(
            counted(self.acks, "delayed acknowledgement"),
            "DelayedACKs of the network namespace",
        );
        let longest = self.delayed.iter().max_by_key(|o| o.duration_ns);
        claim.saw_if(longest.map(|longest| in_words(case, longest)), "longest of these waits");
        claim.exclude(
            "a slow server",
            format!(
                "a slow server has the whole request: here it was still in the send queue, and \
                 the waits have one length ({} of {})",
                count(self.n()),
                count(self.waits)
            ),
        );
    }
}

fn key(outlier: &Outlier) -> Option<Key> {
    outlier.syscall.map(|call| (outlier.tgid, call.args[0]))
}

/// Connections that have something in their send queue nearly always.
fn held_back(case: &Case) -> BTreeMap<Key, Unsent> {
    let mut connections = BTreeMap::<Key, Unsent>::new();
    let queues = case.run.sockets.queues.iter();
    for second in queues.filter(|second| second.socket.kind == SocketKind::Tcp) {
        let key = (second.socket.tgid, u64::from(second.socket.fd));
        let unsent = connections.entry(key).or_default();
        unsent.name = second.socket.to_string();
        unsent.sum += second.send.mean * second.looks;
        unsent.looks += second.looks;
        unsent.max = unsent.max.max(second.send.max);
    }
    connections.retain(|_, unsent| unsent.is_held_back());
    connections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue};
    use model::{Depth, Syscall, SyscallCall};

    const MS: u64 = 1_000_000;

    fn client(wait_ns: u64, unsent: u64) -> RunBuilder {
        let mut connection = queue(SocketKind::Tcp, 0, 0, 0);
        connection.send = Depth { mean: unsent, max: unsent, ..Depth::default() };
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (RECEIVE, 3 * SECOND)])
            .counter("net.tcp_delayed_acks", 100, 125)
            .queue(connection);
        for n in 0..20 {
            let mut wait = interval(10, RECEIVE, n * SECOND / 10, wait_ns, None);
            wait.kind = OutlierKind::Syscall;
            let call = Syscall::named("recvfrom").unwrap();
            wait.syscall = Some(SyscallCall { call, args: [3, 0, 0, 0, 0, 0], result: Some(2) });
            run = run.kept(wait);
        }
        run
    }

    #[test]
    fn claimed_are_waits_of_40_ms_with_the_request_still_to_be_sent() {
        let run = client(44 * MS, 232).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(RECEIVE), claim.waits), (880 * MS, 20));
        assert!(claim.takes_idle && claim.doubts.is_empty());
    }

    /// A server with a loop that waits for requests; each second has 50 looks at its connection.
    fn server(nagle_looks: u64) -> RunBuilder {
        const POLL: Account = Account::Blocked(Blocked::Poll);
        let second = |n: u64| model::QueueSecond {
            start_ns: n * SECOND,
            nagle_looks,
            ..queue(SocketKind::Tcp, 0, 0, 0)
        };
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND / 10), (POLL, 39 * SECOND / 10)])
            .counter("net.tcp_delayed_acks", 100, 200);
        (0..4).fold(run, |run, n| run.queue(second(n)))
    }

    #[test]
    fn the_end_of_an_answer_that_is_held_back_is_seen_at_the_socket() {
        let run = server(40).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(Account::Blocked(Blocked::Poll)), 4 * SECOND / 5 * 4);
        assert!(claim.takes_idle && claim.doubts.is_empty());
        assert_eq!(crate::explain(&run).findings[0].cause, "nagle-delack");
        assert!(examine(&Case::new(&server(5).build())).is_err(), "for a moment now and then");
    }

    #[test]
    fn a_server_that_takes_its_time_is_not_this() {
        for run in [client(44 * MS, 0), client(90 * MS, 232)] {
            assert!(examine(&Case::new(&run.build())).is_err());
        }
    }
}
