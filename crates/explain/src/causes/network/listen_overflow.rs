//! listen-overflow: connections that come faster than they are accepted fill the queue of a
//! listening socket; the kernel drops what comes then, and the client tries again after 1, 3, 7 s.
//!
//! # Evidence
//!
//! A listening socket of the target whose queue was seen longer than its backlog (looked at every
//! 20 ms or more), or that dropped connections while ListenOverflows of the network namespace grew;
//! connects that took 0.8 s or more, so that a SYN was sent again; so do waits in poll for one socket that is to
//! be connected (a connect with a time limit). Of a connect that an edge of the
//! recording cuts the part in it counts, from 0.1 s on. Drops alone are no evidence: the
//! socket also counts what does not fit into the queue of SYNs, and with TCP_DEFER_ACCEPT each
//! connection whose data is not there yet.
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
use crate::case::cut_waits::{cut_in_words, cut_waits};
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

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

/// Where there was time to accept them.
const FIX_LIMIT: &str = "Look for a limit at which the server stops accepting (HAProxy: maxconn; memcached: -c; \
                         nginx: worker_connections; the file descriptors of the process): raise it, or \
                         serve connections sooner. A larger backlog lets more of them wait.";

const CONNECT: Account = Account::Blocked(Blocked::SocketConnect);
/// Below that no SYN was sent again: the first retry comes after 1 s (which one 8th may be off).
const RETRIED_NS: u64 = 800_000_000;
/// Of a connect that began before the recording, or goes on when it ends, so much within it is more than
/// a way to a host and back.
const CUT_NS: u64 = 100_000_000;

/// Drops that are one in so many connections are worth naming.
const WORTH: u64 = 100;

/// A listening socket over the run.
#[derive(Default)]
struct Listener {
    tgid: u32,
    /// In which it was looked at, and of these those in which half of its room or more was taken on average.
    seconds: u64,
    full_seconds: u64,
    largest: u64,
    limit: u64,
    drops: u64,
}

fn examine(case: &Case) -> Verdict {
    let listeners = listeners(case);
    let overflows = case.run.counter("net.listen_overflows").map_or(0, |c| c.growth());
    let is_full = |l: &Listener| l.largest > l.limit || (l.drops > 0 && overflows > 0);
    let full = listeners.iter().filter(|(_, listener)| is_full(listener));
    let full = full.max_by_key(|(_, l)| (l.drops, l.largest));
    let retried = || {
        case.outliers_in(CONNECT)
            .filter(|o| o.kind == OutlierKind::Syscall && o.breakdown.get(CONNECT) >= RETRIED_NS)
    };
    let cut: Vec<u64> = cut_waits(case.run, CONNECT).iter().map(|wait| wait.ns).collect();
    let cut: Vec<u64> = cut.into_iter().filter(|ns| *ns >= CUT_NS).collect();
    let seen = retried().map(|o| o.breakdown.get(CONNECT)).chain(cut.iter().copied());
    let (waits, waited) = seen.fold((0, 0), |(n, ns): (u64, u64), one| (n + 1, ns + one));
    if full.is_none() && (overflows == 0 || waits == 0) {
        return Err(Absent(format!(
            "no listening socket was seen full; {} of connections by the host's count, {} at the \
             sockets for other reasons, {} waited for a second try",
            counted(overflows, "overflow"),
            counted(listeners.values().map(|listener| listener.drops).sum(), "drop"),
            counted(waits, "connect")
        )));
    }

    let lost: Accounts = [(CONNECT, waited)].into_iter().filter(|(_, ns)| *ns > 0).collect();
    let of = full.map_or("a listening socket".to_owned(), |(name, _)| name.clone());
    let mut claim = Claim::new(format!("{of} has no room for more connections"), lost, waits);
    claim.takes_idle = true;
    let drops = full.map_or(0, |(_, listener)| listener.drops);
    let accepted = accepted(case);
    // Few among many do not lead, whoever they were.
    claim.dropped = if drops.saturating_mul(WORTH) >= accepted { drops } else { 0 };
    say_what_was_full(full, &mut claim);
    claim.saw(
        format!("{} for {} that were accepted", counted(drops, "drop"), count(accepted)),
        "drops of the socket, and calls of accept",
    );
    let idle = full.and_then(|(_, listener)| idle_share(case, listener));
    claim.fix = idle.as_ref().map(|_| FIX_LIMIT);
    second_tries(case, (waits, waited), &mut claim);
    claim.trigger(match idle {
        Some(idle) => format!(
            "the queue was full for most of the time, and meanwhile the process that accepts waited for \
             connections or requests for {idle} of its own: it leaves connections alone on purpose, or is \
             not told of them"
        ),
        None => "connections come faster than they are accepted".to_owned(),
    });
    claim.saw(counted(overflows, "overflow"), "ListenOverflows of the network namespace");
    claim.saw_if(
        cut_in_words(cut.iter().copied()),
        "accounts of the threads, at the edges of the recording",
    );
    let longest = retried().max_by_key(|o| o.breakdown.get(CONNECT));
    claim.saw_if(longest.map(|longest| in_words(case, longest)), "longest connect");
    claim.exclude(
        "loss on the way to the socket",
        format!(
            "the socket itself counted the drops: {}, the host {}",
            count(drops),
            counted(overflows, "overflow")
        ),
    );
    Ok(claim)
}

/// How many clients waited for a second try, and how long in all.
fn second_tries(case: &Case, (waits, waited): (u64, u64), claim: &mut Claim) {
    if waits > 0 {
        claim.trigger(format!(
            "{} waited for a second try: {} in all, mean {}",
            counted(waits, "connect"),
            duration(waited),
            mean(waited, waits)
        ));
    } else {
        claim.doubt(
            0.9,
            match case.accounts.get(CONNECT) {
                0 => "the clients are not part of the target: what they lost is not known",
                _ => "no second try was seen: what those in connect lost by them is not known",
            },
        );
    }
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

/// The part of its time in which a process waited for connections or requests, if that is most of it though the
/// queue was full all along: bursts may overflow a queue beside a server that is quick.
fn idle_share(case: &Case, listener: &Listener) -> Option<String> {
    let accounts = case.process(listener.tgid)?;
    let idle = [Blocked::Poll, Blocked::SocketAccept].map(Account::Blocked);
    let idle = accounts.sum_of(|account| idle.contains(&account));
    let is_full = listener.full_seconds > listener.seconds / 2;
    (is_full && idle > accounts.total() / 2).then(|| percent(idle, accounts.total()))
}

/// Calls of accept, those in vain included.
fn accepted(case: &Case) -> u64 {
    ["accept", "accept4"].iter().fold(0, |sum, name| case.calls(name).0.saturating_add(sum))
}

/// By process and socket.
fn listeners(case: &Case) -> BTreeMap<String, Listener> {
    let mut listeners = BTreeMap::<String, Listener>::new();
    let listening = |second: &&QueueSecond| second.socket.kind == SocketKind::TcpListening;
    for second in case.run.sockets.queues.iter().filter(listening) {
        let name = format!("{} of {}", second.socket, case.process_name(second.socket.tgid));
        let listener = listeners.entry(name).or_default();
        listener.tgid = second.socket.tgid;
        listener.seconds += 1;
        listener.full_seconds += u64::from(second.receive.mean > second.receive.limit / 2);
        listener.largest = listener.largest.max(second.receive.max);
        listener.limit = second.receive.limit;
        listener.drops += second.drops;
    }
    listeners
}

#[cfg(test)]
mod tests {
    use model::{Metric, Outlier, Syscall};

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue};

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

    /// A limit of connections (maxconn): the server has time, and does not accept.
    #[test]
    fn a_server_that_has_time_and_does_not_accept_has_a_limit() {
        let told = |busy: u64, mean: u64| {
            let poll = Account::Blocked(Blocked::Poll);
            let run = RunBuilder::new().thread(10, 10, &[(USER, busy), (poll, SECOND)]);
            let mut second = queue(SocketKind::TcpListening, 2, 1, 7);
            second.receive.mean = mean;
            let run = run.queue(second).build();
            let claim = examine(&Case::new(&run)).unwrap();
            (claim.fix, claim.chain.last().unwrap().text.clone())
        };
        let (fix, text) = told(SECOND / 10, 2);
        assert_eq!(fix, Some(FIX_LIMIT));
        assert!(text.contains("for connections or requests for 91 %"), "{text}");
        let others = [told(2 * SECOND, 2), told(SECOND / 10, 0)];
        let faster = "connections come faster than they are accepted";
        assert!(others.iter().all(|(fix, text)| fix.is_none() && text == faster), "{others:?}");
    }

    #[test]
    fn clients_in_the_target_are_not_said_to_be_elsewhere() {
        let doubt = |run: RunBuilder| {
            let run = run.queue(queue(SocketKind::TcpListening, 2, 1, 7)).build();
            format!("{:?}", examine(&Case::new(&run)).unwrap().doubts)
        };
        let outside = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]);
        assert!(doubt(outside).contains("not part of the target"));
        let quick = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (CONNECT, SECOND / 100)]);
        assert!(doubt(quick).contains("no second try was seen"));
    }

    /// Of threads 10 and 11 one hangs in connect all the time, and one when the recording begins and
    /// when it ends.
    #[test]
    fn connects_that_an_edge_of_the_recording_cuts_are_lost_within_it() {
        let half = 3 * SECOND / 2;
        let run = RunBuilder::new()
            .thread(10, 10, &[(CONNECT, 3 * SECOND)])
            .open(CONNECT)
            .thread(11, 10, &[(CONNECT, 2 * half)])
            .open(CONNECT)
            .interval(11, CONNECT, 0, half, None)
            .queue(queue(SocketKind::TcpListening, 2, 1, 7));
        let run = run.build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(CONNECT), claim.waits), (6 * SECOND, 3));
        assert!(claim.doubts.is_empty(), "{:?}", claim.doubts);
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("3 of them began before")));
    }

    fn server(drops: u64, overflows: u64, accepted: usize) -> Verdict {
        let accept = Metric::Syscall(Syscall::named("accept4").unwrap());
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .queue(queue(SocketKind::TcpListening, 3, 128, drops))
            .counter("net.listen_overflows", 5, 5 + overflows)
            .values(accept, 5, &vec![1000; accepted]);
        examine(&Case::new(&run.build()))
    }

    #[test]
    fn drops_without_an_overflow_are_of_another_kind() {
        let Absent(missing) = server(300, 0, 300).unwrap_err();
        assert!(missing.contains("300 drops at the sockets for other reasons"), "{missing}");
        assert_eq!(server(300, 300, 300).unwrap().dropped, 300);
    }

    #[test]
    fn one_drop_among_thousands_does_not_make_it_a_finding() {
        assert_eq!(server(1, 1, 5000).unwrap().dropped, 0);
        assert_eq!(server(60, 60, 5000).unwrap().dropped, 60);
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
