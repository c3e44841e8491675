//! What was sent to a peer that has not answered when the recording ended.
//!
//! A call that is never answered ends no wait, so it is in no finding, and a peer that hangs looks like
//! one that has nothing to tell: a queue without a job, a long poll, a log that is shipped. Who sent, to
//! whom, and for how long there was no answer is shown with the findings.
//!
//! Packets of UDP are often sent to somebody who never answers (statsd, syslog). Where a process owes answers
//! itself, or asks a name server, it waits for one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Finding, QueueSecond, ServiceRole, Unanswered};

use crate::case::Case;
use crate::case::silent_peers::{is_name_server, silent_peers};

/// Shorter silences are ordinary.
const SILENCE_NS: u64 = 1_000_000_000;

/// By process and peer, those with the longest silence first; none of a part of a run.
pub(super) fn unanswered(case: &Case, findings: &[Finding]) -> Vec<Unanswered> {
    let run = case.run;
    let end_ns = run.header.started_ns.saturating_add(run.length_ns());
    let is_found = findings.iter().any(|finding| !finding.minor);
    let mut of_peers = BTreeMap::<_, Unanswered>::new();
    let silent =
        run.sockets.queues.iter().filter(|_| case.scope().is_none()).filter_map(|second| {
            let last = second.sent_last?;
            let ns = end_ns.saturating_sub(last.sent_ns);
            (ns >= SILENCE_NS).then_some((second, last, ns))
        });
    for (second, last, ns) in silent {
        let tgid = second.socket.tgid;
        let remote = second.socket.address.remote;
        let peer = of_peers.entry((tgid, remote)).or_insert_with(|| {
            let peer = other_end(case, second);
            Unanswered {
                tgid,
                comm: run.comm(tgid).to_owned(),
                to: remote.map_or_else(String::new, |remote| remote.to_string()),
                peer,
                peer_comm: peer_name(case, second, peer),
                connections: 0,
                never: 0,
                ns: 0,
                packets: 0,
                matters: !is_found,
            }
        });
        peer.connections += 1;
        peer.never += u64::from(last.heard_ns.is_none());
        peer.ns = peer.ns.max(ns);
    }
    let packets = packets_to_nobody(case, end_ns);
    let mut all: Vec<Unanswered> = of_peers.into_values().chain(packets).collect();
    all.sort_by_key(|peer| Reverse(peer.ns));
    all
}

/// Peers that answered no packet of UDP, of processes that wait for an answer.
fn packets_to_nobody(case: &Case, end_ns: u64) -> Vec<Unanswered> {
    let peers = silent_peers(case.run).filter(|_| case.scope().is_none());
    let awaited = peers.filter_map(|service| {
        let ns = end_ns.saturating_sub(service.packets_since_ns?);
        let is_awaited = is_name_server(service) || owes_answers(case, service.tgid, end_ns);
        (ns >= SILENCE_NS && is_awaited).then(|| Unanswered {
            tgid: service.tgid,
            comm: case.run.comm(service.tgid).to_owned(),
            to: service.name.clone(),
            peer: None,
            peer_comm: String::new(),
            connections: service.connections,
            never: service.connections,
            ns,
            packets: service.packets,
            // Somebody waits for them, whatever is found of other peers.
            matters: true,
        })
    });
    awaited.collect()
}

/// A request that it has read is open for as long.
fn owes_answers(case: &Case, tgid: u32, end_ns: u64) -> bool {
    let mut services = case.run.sums.services.iter();
    services.any(|service| {
        let open_ns = service.oldest_ns.map_or(0, |oldest| end_ns.saturating_sub(oldest));
        service.role == ServiceRole::Server && service.tgid == tgid && open_ns >= SILENCE_NS
    })
}

/// The recorded process that has the other end.
fn other_end(case: &Case, second: &QueueSecond) -> Option<u32> {
    let mirrored = second.socket.address.mirrored()?;
    let ends = case.run.sockets.queues.iter().filter(|other| other.socket.address == mirrored);
    ends.map(|other| other.socket.tgid).next()
}

/// Of a peer that is not recorded whoever of this host answered earlier calls to it.
fn peer_name(case: &Case, second: &QueueSecond, peer: Option<u32>) -> String {
    if let Some(peer) = peer {
        return case.run.comm(peer).to_owned();
    }
    let Some(remote) = second.socket.address.remote else { return String::new() };
    let is_it = |program| {
        let flows = case.run.messages.program(program).map(|program| program.flows.iter());
        flows.into_iter().flatten().any(|flow| flow.name == remote.to_string())
    };
    let services = case.run.sums.services.iter().filter(|service| is_it(service.program));
    services
        .filter_map(|service| service.peer.as_ref())
        .map(|peer| peer.comm.clone())
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, Run, SentLast, Service, ServiceRole, SocketKind};

    use crate::testing::requests::{PORT, calls};
    use crate::testing::{RunBuilder, SECOND, USER, queue};

    const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);

    /// A process that has sent on so many connections, so long before the end.
    fn silent(connections: u64, ago_ns: u64, heard: bool) -> Run {
        let mut run = RunBuilder::new().thread(10, 10, &[(RECEIVE, 4 * SECOND)]).build();
        let end_ns = run.header.started_ns + run.length_ns();
        run.sockets.queues = (0..connections)
            .map(|n| {
                let mut second = queue(SocketKind::Tcp, 0, 1000, 0);
                second.socket.inode = n;
                second.socket.address = format!("10.0.0.7:4000{n} to 10.0.0.1:80").parse().unwrap();
                let sent_ns = end_ns - ago_ns;
                let heard_ns = heard.then_some(sent_ns - 1);
                second.sent_last = Some(SentLast { sent_ns, heard_ns });
                second
            })
            .collect();
        run
    }

    #[test]
    fn connections_are_told_by_peer_with_the_longest_silence() {
        let found = crate::explain(&silent(3, 2 * SECOND, true));
        let [peer] = &found.unanswered[..] else { panic!("{found:?}") };
        assert_eq!((peer.to.as_str(), peer.connections, peer.never), ("10.0.0.1:80", 3, 0));
        assert_eq!((peer.ns, peer.matters), (2 * SECOND, true));
        assert_eq!((peer.peer, peer.peer_comm.as_str()), (None, ""));
        assert_eq!(crate::explain(&silent(1, 2 * SECOND, false)).unanswered[0].never, 1);
        assert!(crate::explain(&silent(1, SECOND / 2, true)).unanswered.is_empty());
    }

    #[test]
    fn a_peer_that_is_recorded_is_named() {
        let mut run = silent(1, 2 * SECOND, true);
        let mut other = run.sockets.queues[0].clone();
        other.socket.address = other.socket.address.mirrored().unwrap();
        (other.socket.tgid, other.sent_last) = (20, None);
        run.sockets.queues.push(other);
        assert_eq!(crate::explain(&run).unanswered[0].peer, Some(20));
    }

    /// Process 10 has sent packets to this peer for three seconds; a request at its port has waited for so long.
    fn sends_packets(name: &str, answers: usize, open_ns: Option<u64>) -> Run {
        let run = RunBuilder::new().thread(10, 10, &[(RECEIVE, 4 * SECOND)]).build();
        let mut run = calls(run, answers, SECOND / 100);
        let end_ns = run.header.started_ns + run.length_ns();
        let peer = run.sums.services.last_mut().unwrap();
        (peer.name, peer.packets) = (name.into(), 12);
        peer.packets_since_ns = Some(end_ns - 3 * SECOND);
        let oldest_ns = open_ns.map(|ns| end_ns - ns);
        let (program, role) = (PORT, ServiceRole::Server);
        let port = Service {
            program,
            role,
            oldest_ns,
            packets: 0,
            packets_since_ns: None,
            ..peer.clone()
        };
        run.sums.services.push(port);
        run
    }

    #[test]
    fn packets_to_nobody_are_told_where_an_answer_is_owed_or_of_a_name_server() {
        let found = crate::explain(&sends_packets("UDP 10.0.0.1:5399", 0, Some(2 * SECOND)));
        let [peer] = &found.unanswered[..] else { panic!("{found:?}") };
        assert_eq!(
            (peer.to.as_str(), peer.packets, peer.ns),
            ("UDP 10.0.0.1:5399", 12, 3 * SECOND)
        );
        assert!(peer.matters);
        let silent = |name, answers, open| {
            crate::explain(&sends_packets(name, answers, open)).unanswered.len()
        };
        assert_eq!(silent("UDP 10.0.0.1:53", 0, None), 1);
        assert_eq!(silent("UDP 10.0.0.1:8125", 0, None), 0);
        assert_eq!(silent("UDP 10.0.0.1:8125", 0, Some(SECOND / 2)), 0);
        assert_eq!(silent("UDP 10.0.0.1:5399", 1, Some(2 * SECOND)), 0);
    }

    #[test]
    fn beside_a_finding_it_does_not_matter() {
        let mut run = RunBuilder::new()
            .thread(21, 20, &[(Account::Throttled, 3 * SECOND), (USER, SECOND)])
            .build();
        run.sockets = silent(1, 2 * SECOND, true).sockets;
        let end_ns = run.header.started_ns + run.length_ns();
        run.sockets.queues[0].sent_last =
            Some(SentLast { sent_ns: end_ns - 2 * SECOND, heard_ns: None });
        let found = crate::explain(&run);
        assert!(!found.findings.is_empty() && !found.unanswered[0].matters, "{found:?}");
        // Who owes an answer waits for one.
        run.sums.services = sends_packets("UDP 10.0.0.1:5399", 0, Some(2 * SECOND)).sums.services;
        let owed = crate::explain(&run).unanswered;
        assert!(owed.iter().any(|peer| peer.packets > 0 && peer.matters), "{owed:?}");
    }
}
