//! listen-overflow: connections that come faster than they are accepted fill the queue of a
//! listening socket; the kernel drops what comes then, and the client tries again after 1, 3, 7 s.
//!
//! # Evidence
//!
//! A listening socket of the target whose queue was longer than its backlog, or that dropped
//! connections (looked at every 20 ms or more); ListenOverflows of the network namespace; connects
//! that took 0.8 s or more, so that a SYN was sent again.
//!
//! # Without whylag
//!
//!     ss -ltn                                    # Recv-Q: waiting for accept; Send-Q: the backlog
//!     nstat -az TcpExtListenOverflows TcpExtListenDrops
//!     sysctl net.core.somaxconn
//!
//! # Sources
//!
//! listen(2); tcp(7); net/ipv4/tcp_ipv4.c.

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, OutlierKind, QueueSecond, RecorderPart, SocketKind};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::LISTEN_OVERFLOW,
    title: "a listening socket has no room for more connections",
    fix: "Enlarge the backlog given to listen() (the kernel takes at most net.core.somaxconn), and \
          accept in a loop and in a thread of its own, so that work on one connection does not \
          keep others waiting.",
    reproduce: "mysteries/bin/listen-overflow-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Sockets]),
    look_alikes: &[],
    symptom: false,
    examine,
};

const CONNECT: Account = Account::Blocked(Blocked::SocketConnect);
/// Below that no SYN was sent again: the first retry comes after 1 s (which one 8th may be off).
const RETRIED_NS: u64 = 800_000_000;

/// A listening socket over the run.
#[derive(Default)]
struct Listener {
    largest: u64,
    limit: u64,
    drops: u64,
}

fn examine(case: &Case) -> Verdict {
    let listeners = listeners(case);
    let overflows = case.run.counter("net.listen_overflows").map_or(0, |c| c.growth());
    let full = listeners.iter().filter(|(_, l)| l.drops > 0 || l.largest > l.limit);
    let full = full.max_by_key(|(_, l)| (l.drops, l.largest));
    let retried = || {
        case.outliers_in(CONNECT)
            .filter(|o| o.kind == OutlierKind::Syscall && o.breakdown.get(CONNECT) >= RETRIED_NS)
    };
    let (waits, waited) =
        retried().fold((0, 0), |(n, ns), o| (n + 1, ns + o.breakdown.get(CONNECT)));
    if full.is_none() && (overflows == 0 || waits == 0) {
        return Err(Absent(format!(
            "no listening socket was seen full; {} of connections by the host's count, {} waited \
             for a second try",
            counted(overflows, "overflow"),
            counted(waits, "connect")
        )));
    }

    let lost: Accounts = [(CONNECT, waited)].into_iter().filter(|(_, ns)| *ns > 0).collect();
    let of = full.map_or("a listening socket".to_owned(), |(name, _)| name.clone());
    let mut claim = Claim::new(format!("{of} has no room for more connections"), lost, waits);
    claim.takes_idle = true;
    claim.dropped = full.map_or(0, |(_, listener)| listener.drops);
    say_what_was_full(full, &mut claim);
    if waits > 0 {
        claim.trigger(format!(
            "{} waited for a second try: {} in all, mean {}",
            counted(waits, "connect"),
            duration(waited),
            mean(waited, waits)
        ));
    } else {
        claim.trigger("connections come faster than they are accepted".to_owned());
        claim.doubt(0.9, "the clients are not part of the target: what they lost is not known");
    }
    claim.saw(counted(overflows, "overflow"), "ListenOverflows of the network namespace");
    let longest = retried().max_by_key(|o| o.breakdown.get(CONNECT));
    claim.saw_if(longest.map(|longest| in_words(case, longest)), "longest connect");
    claim.exclude(
        "loss on the way to the socket",
        format!(
            "the socket itself counted the drops: {}, the host {}",
            claim.dropped,
            counted(overflows, "overflow")
        ),
    );
    Ok(claim)
}

fn say_what_was_full(full: Option<(&String, &Listener)>, claim: &mut Claim) {
    if let Some((name, listener)) = full {
        claim.mechanism(format!(
            "{name} has room for {} that wait for accept; {} were seen waiting at once, {} dropped",
            counted(listener.limit + 1, "connection"),
            count(listener.largest),
            count(listener.drops)
        ));
        claim.saw(
            format!("largest queue {}, backlog {}", listener.largest, listener.limit),
            "socket iterator, each 20 ms or more",
        );
    } else {
        claim.mechanism("the other side drops connections that it has no room for".to_owned());
        claim.doubt(0.7, "the listening socket is not one of the target's");
    }
}

/// By process and socket.
fn listeners(case: &Case) -> BTreeMap<String, Listener> {
    let mut listeners = BTreeMap::<String, Listener>::new();
    let listening = |second: &&QueueSecond| second.socket.kind == SocketKind::TcpListening;
    for second in case.run.sockets.queues.iter().filter(listening) {
        let name = format!("{} of {}", second.socket, case.process_name(second.socket.tgid));
        let listener = listeners.entry(name).or_default();
        listener.largest = listener.largest.max(second.receive.max);
        listener.limit = second.receive.limit;
        listener.drops += second.drops;
    }
    listeners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue};
    use model::Outlier;

    fn connect(ns: u64) -> Outlier {
        Outlier { kind: OutlierKind::Syscall, ..interval(10, CONNECT, 0, ns, None) }
    }

    fn clients() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (CONNECT, 3 * SECOND)])
            .kept(connect(2 * SECOND))
            .kept(connect(SECOND / 10))
    }

    #[test]
    fn claimed_are_the_connects_that_were_tried_again() {
        let listening = queue(SocketKind::TcpListening, 2, 1, 7);
        let run = clients().queue(listening).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(CONNECT), claim.waits, claim.dropped), (2 * SECOND, 1, 7));
        assert!(claim.doubts.is_empty() && claim.takes_idle);
    }

    #[test]
    fn a_slow_connect_alone_is_no_overflow() {
        let roomy = queue(SocketKind::TcpListening, 3, 128, 0);
        let run = clients().queue(roomy).build();
        assert!(examine(&Case::new(&run)).is_err());
        let run = clients().counter("net.listen_overflows", 5, 9).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }
}
