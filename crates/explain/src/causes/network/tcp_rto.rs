//! tcp-rto: segments of TCP were lost, and nothing came that could have shown it; only the
//! retransmission timer, 200 ms and doubling, sent them again.
//!
//! A segment that is lost among others is sent again within a round trip, because the others are
//! acknowledged. The last ones of a request have no others behind them: TCP sends one tail
//! loss probe (TLP), and waits.
//!
//! # Evidence
//!
//! Waits for a socket that ended shortly after a timer had sent a segment again, and that lasted as
//! long as the timer was set (tcp_retransmit_skb, with the state of the connection); what the other
//! end's socket dropped, if it is recorded, too; TCPTimeouts and RetransSegs of the network
//! namespace.
//!
//! # Without whylag
//!
//!     nstat -az TcpExtTCPTimeouts TcpRetransSegs TcpExtTCPLostRetransmit
//!     ss -ti dst ADDRESS                         # rto, retrans, backoff
//!     perf trace -a -e tcp:tcp_retransmit_skb
//!
//! # Sources
//!
//! RFC 6298; RFC 8985 (TLP); net/ipv4/tcp_timer.c;
//! Documentation/networking/ip-sysctl.rst.

use std::collections::{BTreeMap, BTreeSet};

use model::{Accounts, RecorderPart, SocketAddress, TimeoutKind};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::network::tcp_timers::{End, Wait, ends, waits};
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::TCP_RTO,
    title: "TCP sends lost segments again only after its timer fires",
    fix: "Find where segments are lost ('whylag show' has what the target's own sockets dropped; \
          'ip -s link', 'tc -s qdisc', 'nstat' for the host) and end it. On a network of your own \
          a smaller net.ipv4.tcp_rto_min_us, or 'ip route change ... rto_min 5ms', shortens the \
          wait.",
    reproduce: "mysteries/bin/tcp-rto-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Sockets]),
    look_alikes: &[],
    symptom: false,
    examine,
};

fn examine(case: &Case) -> Verdict {
    let ends = ends(case.run);
    let waits = waits(case, &ends);
    let of_kind = |kind| {
        let timeouts = ends.values().flat_map(|end| &end.timeouts);
        timeouts.filter(|timeout| timeout.kind == kind).count() as u64
    };
    let segments: u64 = ends.values().map(|end| end.segments).sum();
    let timers = of_kind(TimeoutKind::Retransmission);
    let by_kind = format!(
        "{} sent again at the target's connections, {} by the retransmission timer, {} as probes, \
         {} to connect",
        counted(segments, "segment"),
        count(timers),
        count(of_kind(TimeoutKind::Probe)),
        count(of_kind(TimeoutKind::Connecting))
    );
    let Some(longest) = waits.iter().max_by_key(|wait| wait.ns) else {
        return Err(Absent(format!("no wait ended by a timer of TCP; {by_kind}")));
    };

    let lost: Accounts = waits.iter().map(|wait| (wait.account, wait.ns)).collect();
    let (n, waited) = (waits.len() as u64, lost.total());
    let process = case.process_name(longest.outlier.tgid);
    let socket = ends.get(&longest.inode).map_or("tcp".to_owned(), |end| end.socket.to_string());
    let title = format!("{process} waits until TCP's timer sends lost segments again");
    let mut claim = Claim::new(title, lost, n);
    claim.takes_idle = true;
    claim.mechanism(format!(
        "{}, {} in all, mean {}, ended when a timer had sent a segment again; the longest on {socket}",
        counted(n, "wait"),
        duration(waited),
        mean(waited, n)
    ));
    claim.trigger(lost_where(case, &waits, &ends));
    claim.saw(by_kind, "tracepoint tcp_retransmit_skb, by socket");
    claim.saw(timers_in_words(&waits), "tracepoint tcp_retransmit_skb and the system calls");
    let after =
        mean(waits.iter().map(|w| w.outlier.end_ns().saturating_sub(w.timeout.at_ns)).sum(), n);
    claim.saw(format!("after the segment was sent again it took {after} until they ended"), "both");
    for (name, words, field) in COUNTERS {
        let grown = case.run.counter(name).map(|counter| counter.growth());
        claim.saw_if(grown.map(|grown| counted(grown, words)), field);
    }
    claim.saw_if(Some(in_words(case, longest.outlier)), "longest of these waits");
    rule_out(&mut claim, &waits, segments, timers);
    if waits.iter().any(|wait| wait.guessed) {
        claim.doubt(0.8, "which of its descriptors a thread in epoll_wait waited for is not known");
    }
    Ok(claim)
}

/// Waits of a process that a timer of TCP ended.
pub(crate) fn waited(case: &Case, tgid: u32) -> Accounts {
    let waits = waits(case, &ends(case.run));
    waits.iter().filter(|w| w.outlier.tgid == tgid).map(|w| (w.account, w.ns)).collect()
}

/// Of the network namespace, whichever program's.
const COUNTERS: [(&str, &str, &str); 3] = [
    ("net.tcp_timeouts", "timeout", "TCPTimeouts of the network namespace"),
    ("net.tcp_retransmitted", "segment", "RetransSegs of the network namespace"),
    ("net.tcp_lost_retransmits", "lost retransmission", "TCPLostRetransmit of the namespace"),
];

/// What the target's own sockets dropped of it, if the other side is recorded, too.
fn lost_where(case: &Case, waits: &[Wait], ends: &BTreeMap<u64, End>) -> String {
    let of_wait = |wait: &Wait| ends.get(&wait.inode)?.socket.address.mirrored();
    let others: BTreeSet<SocketAddress> = waits.iter().filter_map(of_wait).collect();
    let drops = case.run.sockets.drops.iter().filter(|d| others.contains(&d.socket.address));
    // What comes twice because it was sent again is dropped as well.
    let lost = drops.filter(|d| !d.reason.starts_with("TCP_"));
    let (n, reasons) = lost.fold((0, BTreeSet::new()), |(n, mut reasons), drops| {
        reasons.insert(drops.reason.as_str());
        (n + drops.count, reasons)
    });
    if n == 0 {
        return "the last segments of a request, or what acknowledges them, were lost on the way"
            .to_owned();
    }
    let reasons: Vec<_> = reasons.into_iter().collect();
    format!("the other side dropped {}: {}", counted(n, "packet"), reasons.join(", "))
}

/// `5 of 7 by the retransmission timer, set to 204 ms to 408 ms`
fn timers_in_words(waits: &[Wait]) -> String {
    let set: Vec<u64> =
        waits.iter().map(|wait| wait.timeout.after_ns).filter(|after| *after > 0).collect();
    let by_timer =
        format!("{} of {} by the retransmission timer", count(set.len() as u64), waits.len());
    match (set.iter().min(), set.iter().max()) {
        (Some(least), Some(most)) if least < most => {
            format!("{by_timer}, set to {} to {}", duration(*least), duration(*most))
        }
        (Some(all), _) => format!("{by_timer}, set to {}", duration(*all)),
        _ => format!("{by_timer}, the others by a probe that came as late"),
    }
}

fn rule_out(claim: &mut Claim, waits: &[Wait], segments: u64, timers: u64) {
    let shortest = waits.iter().map(|wait| wait.outlier.duration_ns).min().unwrap_or(0);
    claim.rule_out(
        ids::NAGLE_DELACK,
        format!(
            "an acknowledgement is delayed by 40 ms, and nothing is sent twice: the shortest of \
             these took {}",
            duration(shortest)
        ),
    );
    claim.exclude(
        "a slow server",
        "a slow server has the request: here each answer came only after a segment was sent again"
            .to_owned(),
    );
    claim.exclude(
        "fast retransmission",
        format!(
            "segments resent because later ones arrived take a round trip; of {} the timer sent \
             {}, and these waits ended after one of a timer",
            count(segments),
            count(timers)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::network::tcp_timers::{POLL, RECEIVE};
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue};
    use model::{
        Account, Outlier, OutlierKind, QueueSecond, Resent, SocketKind, Syscall, SyscallCall,
        Timeout,
    };

    const MS: u64 = 1_000_000;
    const CLIENT: u64 = 5;
    const SERVER: u64 = 6;

    fn end(inode: u64, timeouts: &[(u64, TimeoutKind, u64)]) -> QueueSecond {
        let mut end = queue(SocketKind::Tcp, 0, 0, 0);
        end.socket.inode = inode;
        let (own, other) = if inode == CLIENT {
            ("10.0.0.1:1", "10.0.0.2:2")
        } else {
            ("10.0.0.2:2", "10.0.0.1:1")
        };
        end.socket.address = format!("{own} to {other}").parse().unwrap();
        let timeout = |(at_ns, kind, after_ns): &(u64, TimeoutKind, u64)| Timeout {
            at_ns: *at_ns,
            kind: *kind,
            after_ns: *after_ns,
        };
        let timeouts: Vec<Timeout> = timeouts.iter().map(timeout).collect();
        end.resent = Resent { segments: 9, timeouts };
        end
    }

    fn wait(tid: u32, object: u64, account: Account, start_ns: u64, ns: u64) -> Outlier {
        let mut wait = interval(tid, account, start_ns, ns, None);
        wait.kind = OutlierKind::Syscall;
        let call = Syscall::named("recvfrom").unwrap();
        wait.syscall = Some(SyscallCall { call, args: [3, 0, 0, 0, 0, 0], result: Some(2) });
        Outlier { object, ..wait }
    }

    fn run() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (RECEIVE, 3 * SECOND), (POLL, SECOND)])
            .counter("net.tcp_timeouts", 5, 7)
    }

    const TIMER: TimeoutKind = TimeoutKind::Retransmission;

    #[test]
    fn claimed_are_waits_that_the_timer_of_their_own_socket_ended() {
        let timeouts = [(204 * MS, TIMER, 204 * MS), (612 * MS, TIMER, 408 * MS)];
        let run = run()
            .queue(end(CLIENT, &timeouts))
            .queue(end(SERVER, &[(200 * MS, TimeoutKind::Probe, 0)]))
            .kept(wait(10, CLIENT, RECEIVE, 0, 613 * MS))
            .kept(wait(11, SERVER, RECEIVE, 0, 612 * MS + 1))
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(RECEIVE), claim.waits), (613 * MS, 1), "of the client alone");
        assert!(claim.takes_idle && claim.doubts.is_empty());
        assert!(claim.evidence[1].text.contains("set to 408 ms"), "{:?}", claim.evidence);
    }

    #[test]
    fn who_waits_for_an_answer_that_is_sent_again_counts_if_nobody_else_does() {
        let run = run()
            .queue(end(CLIENT, &[]))
            .queue(end(SERVER, &[(204 * MS, TIMER, 204 * MS)]))
            .kept(wait(10, CLIENT, POLL, 0, 206 * MS));
        let claim = examine(&Case::new(&run.build())).unwrap();
        assert_eq!(claim.lost.get(POLL), 206 * MS);
    }

    #[test]
    fn no_more_is_claimed_than_the_timers_were_set_to() {
        let idle_before = wait(10, CLIENT, RECEIVE, 0, 9 * SECOND + 205 * MS);
        let timeouts = [(9 * SECOND + 204 * MS, TIMER, 204 * MS)];
        let run = run().queue(end(CLIENT, &timeouts)).kept(idle_before).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(RECEIVE), 205 * MS);
    }

    #[test]
    fn who_waits_for_many_connections_waits_for_this_one_only_if_he_began_when_it_was_sent() {
        let timeouts = [(9 * SECOND, TIMER, 204 * MS)];
        let found = |start_ns: u64| {
            let any = wait(10, 0, POLL, start_ns, 9 * SECOND + MS - start_ns);
            examine(&Case::new(&run().queue(end(CLIENT, &timeouts)).kept(any).build())).is_ok()
        };
        assert!(found(9 * SECOND - 204 * MS) && !found(0));
    }

    #[test]
    fn other_waits_and_other_segments_are_not_this() {
        let late = wait(10, CLIENT, RECEIVE, 0, 900 * MS);
        let early = wait(10, CLIENT, RECEIVE, 160 * MS, 45 * MS);
        let fitting = wait(10, CLIENT, RECEIVE, 0, 205 * MS);
        let of_timer = end(CLIENT, &[(204 * MS, TIMER, 204 * MS)]);
        let connecting = end(CLIENT, &[(204 * MS, TimeoutKind::Connecting, 204 * MS)]);
        let quick_probe = end(CLIENT, &[(8 * MS, TimeoutKind::Probe, 0)]);
        let short = wait(10, CLIENT, RECEIVE, 0, 9 * MS);
        for (end, wait) in [
            (of_timer.clone(), late),
            (of_timer, early),
            (connecting, fitting.clone()),
            (end(CLIENT, &[]), fitting),
            (quick_probe, short),
        ] {
            let run = run().queue(end).kept(wait).build();
            let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
            assert!(missing.contains("9 segments sent again"), "{missing}");
        }
    }
}
