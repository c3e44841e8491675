//! connect-timeout: a peer does not answer when it is to be connected to. TCP sends its SYN again after 1, 3, 7 s
//! and so on, and who connects waits until it gives up, for two minutes if it has set no limit.
//!
//! A host that is not there, a firewall that drops packets instead of refusing them, and a full queue of
//! connections at the other side look the same from here: nothing comes back.
//!
//! # Evidence
//!
//! SYNs that were sent again at sockets of the target (tcp_retransmit_skb, with the state of the connection), or
//! sockets that were seen without an answer to the first one for 0.8 s, or for as long as a limit of 0.1 s or more
//! let them; waits of their processes for a connection, in connect or in poll for one socket that is to be
//! connected, that took 0.8 s or were given up. Where an event loop connects, no thread waits for that alone: then
//! the sockets are the evidence, and the time is that in which a request was open that came before such a connect
//! began, and was answered after its end. Connects to this host are left to listen-overflow, if its listening
//! sockets were full.
//!
//! # Without whylag
//!
//!     ss -tnpo state syn-sent                    # who is to be connected, the timer and the tries so far
//!     nstat -az TcpExtTCPSynRetrans
//!     sysctl net.ipv4.tcp_syn_retries            # 6: connect gives up after 127 s
//!
//! # Sources
//!
//! RFC 6298, 2.1 and 5.7; tcp(7); net/ipv4/tcp_timer.c.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use model::{Account, Accounts, Blocked, RecorderPart};

use crate::case::Case;
use crate::case::cut_waits::cut_in_words;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::network::connects::{CONNECT, End, Peers, Wait, unanswered};
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::CONNECT_TIMEOUT,
    title: "a peer does not answer when it is to be connected to",
    fix: "See whether the peer is up and can be reached from here ('nc -vz HOST PORT', 'ss -tno state syn-sent'), \
          whether a firewall drops packets to that port, and whether its queue of connections is full ('nstat \
          TcpExtListenOverflows' there). Give connects a time limit that is short beside the work they are for, \
          and leave out a peer that has not answered for a while.",
    reproduce: "mysteries/bin/connect-timeout-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Sockets]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Peers worth a line.
const PEERS_SHOWN: usize = 3;
/// An event loop sleeps so.
const POLL: Account = Account::Blocked(Blocked::Poll);

fn examine(case: &Case) -> Verdict {
    let overflows = case.run.counter("net.listen_overflows").map_or(0, |c| c.growth());
    let unanswered = unanswered(case, overflows > 0);
    let (peers, waits) = (&unanswered.peers, &unanswered.waits);
    let sockets: u64 = peers.values().map(|peer| peer.sockets).sum();
    let Some((first, _)) = peers.iter().max_by_key(|(_, peer)| (peer.sockets, peer.longest_ns))
    else {
        return Err(Absent(
            "no SYN was sent again at the target's sockets, but for such that a full queue of this host dropped, \
             and none was seen without an answer for long"
                .to_owned(),
        ));
    };
    let of_requests = unanswered.of_requests(case);
    let waited = waits.iter().fold(0u64, |sum, wait| sum.saturating_add(wait.ns));
    let mut lost: Accounts = [(CONNECT, waited)].into_iter().filter(|(_, ns)| *ns > 0).collect();
    if let Some((_, ns)) = of_requests.as_ref().filter(|_| waits.is_empty()) {
        lost.add(POLL, *ns);
    }
    let n = waits.len() as u64;
    let mut claim = Claim::new(title(case, first, peers, waits), lost, n);
    claim.takes_idle = true;
    claim.is_stall = true;
    claim.requests = of_requests.map(|(cost, _)| cost);
    // Of an event loop that answers no requests it is not known what it had to do.
    claim.longest_ns = peers.values().map(|peer| peer.longest_ns).max().unwrap_or(0);
    claim.mechanism(mechanism(waits, waited, peers));
    claim.trigger(
        "nothing came back: a host that is not there, a firewall that drops what is sent to that port, or a full \
         queue of connections at the other side"
            .to_owned(),
    );
    let mut most: Vec<_> = peers.iter().collect();
    most.sort_by_key(|(_, peer)| Reverse((peer.sockets, peer.longest_ns)));
    for ((tgid, address), peer) in most.into_iter().take(PEERS_SHOWN) {
        claim.saw(
            format!(
                "{} to {address}: {} to be connected, {} sent again, one of them for {} at least",
                case.process_name(*tgid),
                counted(peer.sockets, "socket"),
                counted(peer.syns, "SYN"),
                duration(peer.longest_ns)
            ),
            "tracepoint tcp_retransmit_skb, and looks at the sockets",
        );
    }
    claim.saw_if(
        cut_in_words(waits.iter().filter(|wait| wait.cut).map(|wait| wait.ns)),
        "accounts of the threads, at the edges of the recording",
    );
    let longest = waits.iter().filter_map(|wait| wait.ended).max_by_key(|o| o.duration_ns);
    claim.saw_if(longest.map(|longest| in_words(case, longest)), "longest of these waits");
    claim.exclude(
        "a full queue of this host",
        match overflows {
            0 => "no listening socket of this network namespace overflowed".to_owned(),
            _ => "the peers are other hosts".to_owned(),
        },
    );
    claim.exclude(
        "a slow server",
        format!(
            "the kernel of the peer makes a connection before its program accepts it, or refuses it at once; here {} \
             had no answer for long",
            counted(sockets, "socket")
        ),
    );
    Ok(claim)
}

/// Whose, and to whom; of several `first`.
fn title(case: &Case, first: &(u32, SocketAddr), peers: &Peers, waits: &[Wait]) -> String {
    let (tgid, address) = first;
    let process = case.process_name(*tgid);
    let addresses: BTreeSet<&SocketAddr> = peers.keys().map(|(_, address)| address).collect();
    let to = match addresses.len() as u64 - 1 {
        0 => address.to_string(),
        1 => format!("{address} and another peer"),
        others => format!("{address} and {} other peers", count(others)),
    };
    match !waits.is_empty() && waits.iter().all(|wait| wait.end == End::Answered) {
        true => format!("{process} is connected to {to} only after it has asked again"),
        false => format!("{process} gets no answer from {to} when it connects"),
    }
}

fn mechanism(waits: &[Wait], waited: u64, peers: &Peers) -> String {
    let n = waits.len() as u64;
    if n == 0 {
        let sockets = peers.values().map(|peer| peer.sockets).sum();
        let ns = peers.values().fold(0u64, |sum, peer| sum.saturating_add(peer.ns));
        return format!(
            "{} had no answer to their SYN for {} in all; no thread waited for that alone: an event loop or a runtime \
             has others to see to meanwhile",
            counted(sockets, "socket"),
            duration(ns)
        );
    }
    let of_end = |end| count(waits.iter().filter(|wait| wait.end == end).count() as u64);
    format!(
        "{} for a connection, {} in all, mean {}; {} ended with an answer, {} without",
        counted(n, "wait"),
        duration(waited),
        mean(waited, n),
        of_end(End::Answered),
        of_end(End::GaveUp)
    )
}

#[cfg(test)]
mod tests {
    use model::{
        Connecting, Context, OutlierKind, Resent, Run, SocketKind, Syscall, SyscallCall, Timeout,
        TimeoutKind,
    };

    use super::*;
    use crate::testing::requests::{request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue};

    /// Process 10 has connected to `peer` from one socket, whose SYN was sent again so often.
    fn connects(peer: &str, syns: u64, overflows: u64, waits: &[(u64, Context)]) -> Run {
        let all: u64 = waits.iter().map(|(ns, _)| ns).sum();
        let mut run = RunBuilder::new()
            .length(20 * SECOND)
            .counter("net.listen_overflows", 0, overflows)
            .thread(10, 10, &[(USER, SECOND), (CONNECT, all)]);
        for (n, (ns, context)) in waits.iter().enumerate() {
            let mut wait = interval(10, CONNECT, (1 + 4 * n as u64) * SECOND, *ns, Some(0));
            wait.waker.as_mut().unwrap().context = *context;
            run = run.kept(wait);
        }
        let mut run = run.build();
        let mut socket = queue(SocketKind::Tcp, 0, 0, 0);
        socket.socket.address = format!("10.0.0.7:40000 to {peer}").parse().unwrap();
        socket.socket.tgid = 10;
        let timeout = |n| Timeout {
            at_ns: (2 + n) * SECOND,
            kind: TimeoutKind::Connecting,
            after_ns: SECOND,
        };
        socket.resent = Resent { segments: syns, timeouts: (0..syns).map(timeout).collect() };
        run.sockets.queues.push(socket);
        run
    }

    fn seen(ns: u64) -> Option<Connecting> {
        Some(Connecting { since_ns: SECOND, last_ns: SECOND + ns })
    }

    fn claim(run: &Run) -> Verdict {
        examine(&Case::new(run))
    }

    #[test]
    fn waits_of_a_process_whose_syns_were_sent_again_are_claimed() {
        let waits = [
            (3 * SECOND, Context::HardIrq),
            (SECOND, Context::SoftIrq),
            (SECOND / 2, Context::SoftIrq),
        ];
        let claim = claim(&connects("10.0.0.1:80", 2, 0, &waits)).unwrap();
        // What took less than a second was a way to a host and back.
        assert_eq!((claim.lost.get(CONNECT), claim.waits), (4 * SECOND, 2));
        assert!(
            claim.title.ends_with("gets no answer from 10.0.0.1:80 when it connects"),
            "{}",
            claim.title
        );
        assert_eq!(claim.longest_ns, 2 * SECOND);
    }

    #[test]
    fn a_time_limit_of_less_than_a_second_is_enough_where_the_socket_was_seen() {
        let found = |ns, context, seen_ns| {
            let mut run = connects("10.0.0.1:80", 0, 0, &[(ns, context)]);
            run.sockets.queues[0].connecting = seen(seen_ns);
            claim(&run).map(|claim| claim.lost.get(CONNECT)).ok()
        };
        assert_eq!(found(SECOND / 2, Context::HardIrq, SECOND / 3), Some(SECOND / 2));
        assert_eq!(found(SECOND / 2, Context::SoftIrq, SECOND / 3), None);
        assert_eq!(found(SECOND / 20, Context::HardIrq, SECOND / 30), None);
        assert_eq!(found(SECOND / 2, Context::HardIrq, 0), None);
    }

    /// The calls around all of its waits are of this name and ended so.
    fn with_calls(mut run: Run, name: &str, result: i64) -> Run {
        let waits: Vec<_> = run.outliers.clone();
        run.outliers.extend(waits.into_iter().map(|wait| model::Outlier {
            kind: OutlierKind::Syscall,
            syscall: Some(SyscallCall {
                call: Syscall::named(name).unwrap(),
                args: [0; 6],
                result: Some(result),
            }),
            ..wait
        }));
        run
    }

    #[test]
    fn the_result_of_the_call_says_whether_there_was_an_answer() {
        for (name, result, title) in [
            ("connect", 0, "is connected to 10.0.0.1:80 only after it has asked again"),
            ("poll", 1, "is connected to 10.0.0.1:80 only after it has asked again"),
            ("poll", 0, "gets no answer from 10.0.0.1:80 when it connects"),
            ("connect", -115, "gets no answer from 10.0.0.1:80 when it connects"),
        ] {
            let run = connects("10.0.0.1:80", 1, 0, &[(SECOND, Context::SoftIrq)]);
            let claim = claim(&with_calls(run, name, result)).unwrap();
            assert!(claim.title.ends_with(title), "{name} {result}: {}", claim.title);
        }
        // A limit that is no timer of high resolution, as SO_SNDTIMEO.
        let brief = || {
            let mut run = connects("10.0.0.1:80", 0, 0, &[(SECOND / 2, Context::SoftIrq)]);
            run.sockets.queues[0].connecting = seen(SECOND / 3);
            run
        };
        assert!(claim(&with_calls(brief(), "connect", -115)).is_ok());
        assert!(claim(&with_calls(brief(), "connect", 0)).is_err());
    }

    #[test]
    fn an_event_loop_loses_no_time_of_its_own() {
        let found = claim(&connects("10.0.0.1:80", 2, 0, &[])).unwrap();
        assert_eq!((found.lost.total(), found.longest_ns), (0, 2 * SECOND));
        // One that gives up before the SYN is sent again.
        let mut run = connects("10.0.0.1:80", 0, 0, &[]);
        run.sockets.queues[0].connecting = seen(SECOND / 2);
        assert!(claim(&run).is_err());
        run.sockets.queues[0].connecting = seen(SECOND - 1);
        assert_eq!(claim(&run).unwrap().longest_ns, SECOND - 1);
    }

    /// 20 requests take a second each, and thread 10 connects within each of them to nobody for 0.9 s.
    #[test]
    fn requests_that_a_connect_lies_within_are_claimed() {
        let run = |late_ns: u64| {
            let mut run = connects("10.0.0.1:80", 0, 0, &[]);
            let socket = run.sockets.queues.pop().unwrap();
            for n in 0..20 {
                let mut one = socket.clone();
                let since_ns = n * SECOND + late_ns;
                one.socket.inode = 100 + n;
                one.connecting = Some(Connecting { since_ns, last_ns: since_ns + 9 * SECOND / 10 });
                run.sockets.queues.push(one);
            }
            served(run, (0..20).map(|n| request(1, 10, 1_000 * n, 0, 1_000)).collect())
        };
        let found = claim(&run(SECOND / 20)).unwrap();
        let of = found.requests.unwrap();
        assert!(
            (of.slowest.share() - 0.9).abs() < 0.01 && (of.of_all - 0.9).abs() < 0.01,
            "{of:?}"
        );
        assert_eq!(found.lost.get(POLL), 18 * SECOND);
        // One that goes on when a request has been answered was not made for it.
        assert!(claim(&run(SECOND / 5)).unwrap().requests.is_none());
    }

    #[test]
    fn a_full_queue_of_this_host_is_another_cause() {
        assert!(claim(&connects("127.0.0.1:80", 2, 5, &[(SECOND, Context::SoftIrq)])).is_err());
        assert!(claim(&connects("10.0.0.7:80", 2, 5, &[(SECOND, Context::SoftIrq)])).is_err());
        let mapped = connects("[::ffff:127.0.0.1]:80", 2, 5, &[(SECOND, Context::SoftIrq)]);
        assert!(claim(&mapped).is_err());
        assert!(claim(&connects("127.0.0.1:80", 2, 0, &[(SECOND, Context::SoftIrq)])).is_ok());
        assert!(claim(&connects("10.0.0.1:80", 2, 5, &[(SECOND, Context::SoftIrq)])).is_ok());
    }
}
