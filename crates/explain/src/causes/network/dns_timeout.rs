//! dns-timeout: a look-up of a name waits for a name server that does not answer, until the
//! resolver's own timeout: 5 s, and once more, unless resolv.conf says otherwise.
//!
//! # Evidence
//!
//! Waits of 0.3 s or more in poll, or in a receive, on a socket that is connected to port 53, that
//! ended without anything having come. Answers that were only late are counted separately.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=connect,poll,recvfrom,recvmsg -p PID
//!     tcpdump -ni any port 53                    # questions without an answer
//!     dig @SERVER NAME; cat /etc/resolv.conf
//!
//! # Sources
//!
//! resolv.conf(5) (timeout, attempts).

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Accounts, Blocked, Outlier, OutlierKind, QueueSecond, RecorderPart, SocketKind,
};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::DNS_TIMEOUT,
    title: "look-ups wait for a name server that does not answer",
    fix: "Take the silent server out of /etc/resolv.conf, or put one that answers in front of it; \
          'options timeout:1 attempts:2' bounds the wait. Keep addresses that are needed again and \
          again, and look others up in a thread on which no work waits.",
    reproduce: "mysteries/bin/dns-timeout-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Sockets]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Where name servers are asked.
const PORT: u16 = 53;
const WAITS: [Account; 2] =
    [Account::Blocked(Blocked::Poll), Account::Blocked(Blocked::SocketReceive)];
/// No resolver gives up earlier; the C library's shortest timeout is a second.
const LONG_NS: u64 = 300_000_000;
const EAGAIN: i64 = 11;

/// A socket connected to a name server.
#[derive(Default)]
struct Query {
    server: String,
    drops: u64,
    received: u64,
}

fn examine(case: &Case) -> Verdict {
    let queries = queries(case);
    let waits = WAITS.iter().flat_map(|account| {
        let of_query = |o: &&Outlier| queries.contains_key(&o.object);
        let calls = case.outliers_in(*account).filter(|o| o.kind == OutlierKind::Syscall);
        calls.filter(of_query).map(|o| (*account, o))
    });
    let (ended, answered): (Vec<_>, Vec<_>) = waits.partition(|(_, wait)| timed_out(wait));
    let late = answered.iter().map(|(_, wait)| wait.duration_ns).max().unwrap_or(0);
    let answers = format!(
        "{} for a name server, not ended by a timeout, were kept whole; the longest took {}",
        counted(answered.len() as u64, "wait"),
        duration(late)
    );
    let Some((_, longest)) = ended.iter().max_by_key(|(_, wait)| wait.duration_ns) else {
        return Err(Absent(format!(
            "no wait for a name server ended by a timeout of {} or more ({} connected to port 53); \
             {answers}",
            duration(LONG_NS),
            counted(queries.len() as u64, "socket")
        )));
    };

    let lost: Accounts =
        ended.iter().map(|(account, wait)| (*account, wait.breakdown.get(*account))).collect();
    let (n, waited) = (ended.len() as u64, lost.total());
    let asked = || ended.iter().filter_map(|(_, wait)| queries.get(&wait.object));
    let servers: BTreeSet<&str> = asked().map(|query| query.server.as_str()).collect();
    let servers = servers.into_iter().collect::<Vec<_>>().join(", ");
    let process = case.process_name(longest.tgid);
    let title = format!("{process} looks names up at {servers}, which does not answer");
    let mut claim = Claim::new(title, lost, n);
    claim.takes_idle = true;
    claim.mechanism(format!(
        "{} for an answer, {} in all, mean {}, each until its timeout",
        counted(n, "wait"),
        duration(waited),
        mean(waited, n)
    ));
    claim.trigger(format!("nothing came back from {servers}"));
    let (received, drops) =
        asked().fold((0, 0), |sum, query| (sum.0.max(query.received), sum.1 + query.drops));
    claim.saw(
        "the socket of each of these waits is connected to port 53 (its only descriptor), and the \
         call returned that nothing had come"
            .to_owned(),
        "socket iterator; system calls (sys_enter, sys_exit)",
    );
    let queued = format!(
        "at most {} bytes were seen in the receive queues of these sockets",
        count(received)
    );
    claim.saw(queued, "socket iterator, each 20 ms or more");
    claim.saw_if(Some(in_words(case, longest)), "longest of these waits");
    claim.exclude(
        "a slow name server",
        format!("an answer that is late ends the wait before its timeout; {answers}"),
    );
    claim.rule_out(
        ids::UDP_RCVBUF_STALL,
        format!("{} dropped at the sockets that asked", counted(drops, "datagram")),
    );
    Ok(claim)
}

/// poll found nothing, or a receive that may only wait so long.
fn timed_out(wait: &Outlier) -> bool {
    let Some(call) = wait.syscall else { return false };
    let result = if call.call.is_one_of(&["poll", "ppoll"]) { 0 } else { -EAGAIN };
    wait.duration_ns >= LONG_NS && call.result == Some(result)
}

/// The target's sockets that ask name servers, by inode.
fn queries(case: &Case) -> BTreeMap<u64, Query> {
    let mut queries = BTreeMap::<u64, Query>::new();
    let udp = |second: &&QueueSecond| second.socket.kind == SocketKind::Udp;
    for second in case.run.sockets.queues.iter().filter(udp) {
        let remote = second.socket.address.remote;
        if let Some(server) = remote.filter(|remote| remote.port() == PORT) {
            let query = queries.entry(second.socket.inode).or_default();
            query.server = server.to_string();
            query.drops += second.drops;
            query.received = query.received.max(second.receive.max);
        }
    }
    queries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue};
    use model::{Syscall, SyscallCall};

    const POLL: Account = WAITS[0];

    /// Waits of a second each on a socket connected to `server`, that end with `result`.
    fn looks_up(server: &str, call: &str, account: Account, result: i64) -> RunBuilder {
        let mut socket = queue(SocketKind::Udp, 0, 212_992, 0);
        socket.socket.address = format!("10.0.0.7:40000 to {server}").parse().unwrap();
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND / 10), (account, 3 * SECOND)])
            .queue(socket);
        for n in 0..3 {
            let mut wait = interval(10, account, n * SECOND, SECOND, None);
            wait.kind = OutlierKind::Syscall;
            wait.object = 5;
            let call = Syscall::named(call).unwrap();
            wait.syscall = Some(SyscallCall { call, args: [0; 6], result: Some(result) });
            run = run.kept(wait);
        }
        run
    }

    #[test]
    fn claimed_are_waits_for_port_53_that_their_timeout_ended() {
        let receive = WAITS[1];
        for (call, account, result) in [("poll", POLL, 0), ("recvfrom", receive, -EAGAIN)] {
            let run = looks_up("10.0.0.2:53", call, account, result).build();
            let claim = examine(&Case::new(&run)).unwrap();
            assert_eq!((claim.lost.get(account), claim.waits), (3 * SECOND, 3));
            assert!(claim.takes_idle && claim.doubts.is_empty());
            assert!(claim.title.ends_with("at 10.0.0.2:53, which does not answer"));
        }
    }

    #[test]
    fn late_answers_other_servers_and_other_sockets_are_not_this() {
        for run in [
            looks_up("10.0.0.2:53", "poll", POLL, 1),
            looks_up("10.0.0.2:5353", "poll", POLL, 0),
            looks_up("10.0.0.2:123", "poll", POLL, 0),
        ] {
            assert!(examine(&Case::new(&run.build())).is_err());
        }
        let mut run = looks_up("10.0.0.2:53", "poll", POLL, 0).build();
        run.outliers.iter_mut().for_each(|outlier| outlier.object = 6);
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("1 socket connected to port 53"), "{missing}");
    }
}
