//! dns-timeout: a look-up of a name waits for a name server that does not answer, until the
//! resolver's own timeout: 5 s, and once more, unless resolv.conf says otherwise.
//!
//! # Evidence
//!
//! Waits of 0.3 s or more in poll, or in a receive, on a socket that is connected to port 53, that
//! ended without anything having come. Answers that were only late are counted separately. A thread
//! that asked name servers so may wait for one when the recording begins or ends: then the part of
//! the wait that lies in it counts, if a timeout ended it, or if it lasts for 0.3 s.
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
    ThreadAccounts,
};

use crate::case::Case;
use crate::case::cut_waits::{CutWait, cut_in_words, cut_waits};
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
/// A socket of which a second began no longer ago was there just now.
const SEEN_NS: u64 = 1_500_000_000;

/// A socket connected to a name server.
#[derive(Default)]
struct Query {
    tgid: u32,
    server: String,
    /// The begin of the first second in which it was there, and of the last one.
    first_ns: u64,
    last_ns: u64,
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
    let cut = cut_by_edges(case, &queries);
    let longest = ended.iter().map(|(_, wait)| *wait).max_by_key(|wait| wait.duration_ns);
    let Some(tgid) = longest.map(|o| o.tgid).or(cut.first().map(|(_, wait)| wait.thread.tgid))
    else {
        return Err(Absent(format!(
            "no wait for a name server ended by a timeout of {} or more ({} connected to port 53); \
             {answers}",
            duration(LONG_NS),
            counted(queries.len() as u64, "socket")
        )));
    };

    let of_ended = ended.iter().map(|(account, wait)| (*account, wait.breakdown.get(*account)));
    let of_cut = cut.iter().map(|(account, wait)| (*account, wait.ns));
    let lost: Accounts = of_ended.chain(of_cut).collect();
    let (n, waited) = ((ended.len() + cut.len()) as u64, lost.total());
    let asked = || {
        let of_ended = ended.iter().filter_map(|(_, wait)| queries.get(&wait.object));
        let of_process = queries.values().filter(|query| query.tgid == tgid);
        of_ended.chain(of_process.filter(|_| ended.is_empty()))
    };
    let servers: BTreeSet<&str> = asked().map(|query| query.server.as_str()).collect();
    let servers = servers.into_iter().collect::<Vec<_>>().join(", ");
    let process = case.process_name(tgid);
    let title = format!("{process} looks names up at {servers}, which does not answer");
    let mut claim = Claim::new(title, lost, n);
    claim.takes_idle = true;
    claim.mechanism(format!(
        "{} for an answer, {} in all, mean {}, each until its timeout{}",
        counted(n, "wait"),
        duration(waited),
        mean(waited, n),
        if cut.is_empty() { "" } else { ", as far as the recording goes" }
    ));
    claim.trigger(format!("nothing came back from {servers}"));
    let (received, drops) =
        asked().fold((0, 0), |sum, query| (sum.0.max(query.received), sum.1 + query.drops));
    evidence(case, &cut, longest, received, &mut claim);
    rule_out(&answers, drops, &mut claim);
    Ok(claim)
}

/// `received` is what the queues of the sockets held at most, in bytes.
fn evidence(
    case: &Case,
    cut: &[(Account, CutWait)],
    longest: Option<&Outlier>,
    received: u64,
    claim: &mut Claim,
) {
    claim.saw(
        "the socket of each of these waits is connected to port 53 (its only descriptor), and the \
         call returned that nothing had come"
            .to_owned(),
        "socket iterator; system calls (sys_enter, sys_exit)",
    );
    claim.saw_if(
        cut_in_words(cut.iter().map(|(_, wait)| wait.ns)),
        "accounts of threads that ask name servers, at the edges of the recording",
    );
    let queued = format!(
        "at most {} bytes were seen in the receive queues of these sockets",
        count(received)
    );
    claim.saw(queued, "socket iterator, each 20 ms or more");
    claim.saw_if(longest.map(|longest| in_words(case, longest)), "longest of these waits");
}

/// `answers` says of those that came how late they were.
fn rule_out(answers: &str, drops: u64, claim: &mut Claim) {
    claim.exclude(
        "a slow name server",
        format!("an answer that is late ends the wait before its timeout; {answers}"),
    );
    claim.rule_out(
        ids::UDP_RCVBUF_STALL,
        format!("{} dropped at the sockets that asked", counted(drops, "datagram")),
    );
}

/// Waits for a name server that an edge of the recording cuts: a timer ended them, or nothing has.
fn cut_by_edges<'a>(
    case: &Case<'a>,
    queries: &BTreeMap<u64, Query>,
) -> Vec<(Account, CutWait<'a>)> {
    let asks = case.run.outliers.iter().filter(|o| queries.contains_key(&o.object));
    let askers: BTreeSet<u32> = asks.map(|o| o.tid).collect();
    let of_process = |tgid: u32| queries.values().filter(move |query| query.tgid == tgid);
    let is_query = |account: Account, wait: &CutWait| {
        let is_asker = askers.contains(&wait.thread.tid);
        let mut open = of_process(wait.thread.tgid);
        match wait.ended {
            Some(ended) if !ended.is_ended_by_timer() => false,
            // Of a poll that was not seen to begin it is not known what it was for.
            Some(ended) if ended.object == 0 => {
                is_asker && open.any(|query| query.first_ns <= ended.end_ns())
            }
            Some(ended) => queries.contains_key(&ended.object),
            None => {
                let soon_ns = wait.thread.last_ns.saturating_sub(SEEN_NS);
                wait.ns >= LONG_NS
                    && (is_asker || all_have_asked(case, wait.thread.tgid, account))
                    && open.any(|query| query.last_ns >= soon_ns)
            }
        }
    };
    let all = WAITS.into_iter().flat_map(|account| {
        let of_it = cut_waits(case.run, account).into_iter();
        of_it.map(move |wait| (account, wait))
    });
    all.filter(|(account, wait)| is_query(*account, wait)).collect()
}

/// All threads of the process that wait so when the recording ends had sent something first.
fn all_have_asked(case: &Case, tgid: u32, account: Account) -> bool {
    let is_open =
        |thread: &&ThreadAccounts| thread.tgid == tgid && thread.alive && thread.open == account;
    let waiting = case.run.threads.iter().filter(is_open).count() as u64;
    let asked = case.waits(account).filter(|wait| wait.tgid == tgid && wait.asked);
    asked.map(|wait| wait.open).fold(0, u64::saturating_add) >= waiting
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
            let first_ns = second.start_ns;
            let new = || Query { first_ns, tgid: second.socket.tgid, ..Query::default() };
            let query = queries.entry(second.socket.inode).or_insert_with(new);
            query.server = server.to_string();
            query.first_ns = query.first_ns.min(first_ns);
            query.last_ns = query.last_ns.max(second.start_ns);
            query.drops += second.drops;
            query.received = query.received.max(second.receive.max);
        }
    }
    queries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval, queue, wait};
    use model::{Context, Run, Syscall, SyscallCall, WaitSum, Waker};

    const POLL: Account = WAITS[0];

    /// Waits of a second each on a socket connected to `server`, that end with `result`.
    fn looks_up(server: &str, call: &str, account: Account, result: i64) -> RunBuilder {
        let mut socket = queue(SocketKind::Udp, 0, 212_992, 0);
        socket.socket.address = format!("10.0.0.7:40000 to {server}").parse().unwrap();
        let mut later = socket.clone();
        later.start_ns = 2 * SECOND;
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND / 10), (account, 3 * SECOND)])
            .queue(socket)
            .queue(later);
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

    /// Thread 10 asks twice, and is in such a wait when the recording begins and when it ends.
    fn asks_at_the_edges(context: Context, open: Account) -> Run {
        let mut run = looks_up("10.0.0.2:53", "poll", POLL, 0).open(open).build();
        let mut first = run.outliers.remove(0);
        let waker = Waker { tid: 0, tgid: 0, comm: "swapper/0".into(), context };
        (first.kind, first.object, first.waker) = (OutlierKind::OffCpu, 0, Some(waker));
        run.outliers.push(first);
        run.threads[0].accounts.add(POLL, SECOND / 2);
        run.threads[0].last_ns = 3 * SECOND + SECOND / 2;
        run
    }

    #[test]
    fn waits_that_an_edge_of_the_recording_cuts_are_lost_within_it() {
        let lost = |run: &Run| examine(&Case::new(run)).unwrap().lost.get(POLL);
        let all = asks_at_the_edges(Context::HardIrq, POLL);
        assert_eq!(lost(&all), 3 * SECOND + SECOND / 2);
        let claim = examine(&Case::new(&all)).unwrap();
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("2 of them began before")));
        let answered = asks_at_the_edges(Context::SoftIrq, USER);
        assert_eq!(lost(&answered), 2 * SECOND, "an answer ended it, and it does something else");
        let mut others = all.clone();
        others.sockets.queues.iter_mut().for_each(|second| second.socket.tgid = 20);
        assert_eq!(lost(&others), 2 * SECOND, "another process has that socket");
    }

    /// All that is seen of it: the thread has sent something, and waits.
    #[test]
    fn a_first_wait_that_the_end_of_the_recording_cuts_is_for_the_socket_that_is_there() {
        let asks = |asked| {
            let mut run = looks_up("10.0.0.2:53", "poll", POLL, 0).open(POLL);
            run = run.wait(WaitSum { asked, open: 1, ..wait(10, POLL, 0, 1, 3 * SECOND) });
            let mut run = run.build();
            run.outliers.clear();
            examine(&Case::new(&run)).map(|claim| (claim.lost.get(POLL), claim.title))
        };
        let (lost, title) = asks(true).unwrap();
        assert_eq!(lost, 3 * SECOND);
        assert!(title.ends_with("at 10.0.0.2:53, which does not answer"), "{title}");
        assert!(asks(false).is_err());
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
