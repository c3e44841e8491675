//! udp-rcvbuf-stall: a receiver was busy elsewhere until its socket's buffer was full, and what
//! came then was dropped.
//!
//! The kernel queues datagrams in the socket, up to the size of its receive buffer. Nothing waits
//! and nothing fails: the sender does not learn that the queue is full, and the receiver sees a
//! gap in the sequence numbers.

use std::collections::{BTreeMap, BTreeSet};

use model::{Accounts, Drops, Outlier, SocketKind};

use super::{Absent, Cause, Claim, Verdict};
use crate::case::Case;
use crate::example::in_words;
use crate::lost::{Class, class};
use crate::phase;
use crate::pieces::{end_of, pieces};
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: "udp-rcvbuf-stall",
    title: "a UDP receiver stalls until its socket's buffer is full",
    fix: "Remove the stall from the thread that receives (give the work to another thread), and \
          make the buffer hold what comes in the longest stall that remains: SO_RCVBUF up to \
          net.core.rmem_max, SO_RCVBUFFORCE with CAP_NET_ADMIN. A larger buffer alone turns loss \
          into delay.",
    reproduce: "mysteries/bin/udp-rcvbuf-stall-faulty 5",
    needs: &["threads", "system calls", "sockets"],
    look_alikes: &["cpu-runqueue", "rt-starvation", "cgroup-throttle"],
    symptom: true,
    examine,
};

/// The kernel's name for a full buffer.
const FULL: &str = "SOCKET_RCVBUFF";

fn examine(case: &Case) -> Verdict {
    let drops: Vec<&Drops> = case.run.sockets.drops.iter().filter(|d| is_overflow(d)).collect();
    let Some(worst) = drops.iter().max_by_key(|drops| drops.count) else {
        return Err(Absent(format!(
            "no datagram was dropped for a full buffer at the target's sockets ({} of UDP seen)",
            count(udp_sockets(case))
        )));
    };
    let packets: u64 = drops.iter().map(|drops| drops.count).sum();
    let stall = dearest_thread(case, &drops);
    let socket = &worst.socket;
    let title = format!(
        "{} lost {} at {socket}: its receiver stalled until the buffer was full",
        case.process_name(socket.tgid),
        counted(packets, "datagram")
    );
    let mut claim = Claim::new(title, stall.accounts.clone(), drops.len() as u64);
    claim.dropped = packets;
    claim.mechanism(format!(
        "the buffer of {} bytes was full {}: {} in all, at most {} at once",
        count(worst.limit),
        counted(drops.len() as u64, "time"),
        counted(packets, "datagram"),
        count(worst.count)
    ));
    let stalled = stall.accounts.total();
    match stall.longest {
        Some(longest) => claim.trigger(format!(
            "while the queue filled, {} (tid {}) did not read: {} ({} of that time), mostly {}",
            longest.comm,
            longest.tid,
            duration(stalled),
            percent(stalled, stall.windows_ns),
            mostly(&stall.accounts)
        )),
        None => {
            claim.trigger("no long wait or call was seen while the queue filled".to_owned());
            claim.doubt(0.6, "the receiver may be computing, or too slow for what comes");
        }
    }
    claim.saw(
        format!(
            "each time the queue filled for {} on average before the first was dropped; at most {} \
             of {} bytes were seen in it",
            mean(drops.iter().map(|d| d.first_ns.saturating_sub(d.filling_ns)).sum(), claim.waits),
            count(drops.iter().map(|drops| drops.queued).max().unwrap_or(0)),
            count(worst.limit)
        ),
        "socket iterator, every 20 ms",
    );
    let reason = if worst.reason.is_empty() { "not told" } else { &worst.reason };
    claim.saw(format!("reason: {reason}"), "tracepoint kfree_skb, or the socket's own count");
    claim.saw_if(stall.longest.map(|longest| in_words(case, longest)), "longest stall");
    let times: Vec<u64> = drops.iter().map(|drops| drops.first_ns).collect();
    claim.saw_if(phase::of_second(case.run, &times), "Rayleigh's test of the first drops");

    let runnable = stall.accounts.sum_of(|account| account.is_waiting_for_cpu());
    if stalled > 0 && runnable < stalled / 5 {
        let because = format!(
            "of the stalls the receiver waited {} for a CPU: {}",
            percent(runnable, stalled),
            duration(runnable)
        );
        claim.rule_out("cpu-runqueue", because);
    }
    let between = case.run.length_ns().saturating_sub(stall.windows_ns);
    claim.rule_out(
        "receiver-too-slow",
        format!(
            "the queue was nearly empty before each time; {} of the run were without a full queue",
            percent(between, case.run.length_ns())
        ),
    );
    Ok(claim)
}

fn is_overflow(drops: &Drops) -> bool {
    drops.socket.kind == SocketKind::Udp && (drops.reason == FULL || drops.reason.is_empty())
}

fn udp_sockets(case: &Case) -> u64 {
    let seconds = case.run.sockets.queues.iter();
    let udp = seconds.filter(|s| s.socket.kind == SocketKind::Udp).map(|s| s.socket.inode);
    udp.collect::<BTreeSet<_>>().len() as u64
}

/// What a thread did while queues filled.
#[derive(Default)]
struct Stall<'a> {
    accounts: Accounts,
    longest: Option<&'a Outlier>,
    windows_ns: u64,
}

/// Of the threads of the socket's process the one that was away longest while it filled.
fn dearest_thread<'a>(case: &Case<'a>, drops: &[&Drops]) -> Stall<'a> {
    let windows = windows(drops);
    let windows_ns = windows.iter().map(|(_, from, to)| to - from).sum();
    let mut threads = BTreeMap::<u32, Stall<'a>>::new();
    for (tgid, from, to) in windows {
        let near = |o: &&Outlier| o.tgid == tgid && o.start_ns < to && end_of(o) > from;
        let mut by_thread = BTreeMap::<u32, Vec<&'a Outlier>>::new();
        for outlier in case.run.outliers.iter().filter(near) {
            by_thread.entry(outlier.tid).or_default().push(outlier);
        }
        for (tid, outliers) in by_thread {
            let stall = threads.entry(tid).or_default();
            for piece in pieces(outliers.into_iter(), from, to) {
                let away = |a| matches!(class(a), Class::Lost | Class::Work);
                let accounts = piece.accounts.iter().filter(|(account, _)| away(*account));
                let before = stall.accounts.total();
                accounts.for_each(|(account, ns)| stall.accounts.add(account, ns));
                let is_longer = |other: &Outlier| piece.outlier.duration_ns > other.duration_ns;
                if stall.accounts.total() > before && stall.longest.is_none_or(is_longer) {
                    stall.longest = Some(piece.outlier);
                }
            }
        }
    }
    let dearest = threads.into_values().max_by_key(|stall| stall.accounts.total());
    Stall { windows_ns, ..dearest.unwrap_or_default() }
}

/// (process, from, to): from a queue nearly empty to the last drop, each moment once.
fn windows(drops: &[&Drops]) -> Vec<(u32, u64, u64)> {
    let mut windows: Vec<(u32, u64, u64)> =
        drops.iter().map(|d| (d.socket.tgid, d.filling_ns, d.last_ns.max(d.filling_ns))).collect();
    windows.sort_unstable();
    windows.dedup_by(|next, last| {
        let joins = next.0 == last.0 && next.1 <= last.2;
        if joins {
            last.2 = last.2.max(next.2);
        }
        joins
    });
    windows
}

/// The largest accounts.
fn mostly(accounts: &Accounts) -> String {
    let largest = accounts.largest_first().into_iter().take(2);
    let parts: Vec<_> =
        largest.map(|(account, ns)| format!("{account} {}", duration(ns))).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, drops};
    use model::{Account, Blocked};

    const MS: u64 = 1_000_000;
    const DISK: Account = Account::Blocked(Blocked::Disk);

    fn run(reason: &str) -> RunBuilder {
        let mut run = RunBuilder::new().thread(10, 10, &[(DISK, SECOND)]);
        for second in 0..4 {
            let at = second * SECOND + 14 * MS;
            run = run.interval(10, DISK, at, 60 * MS, None).dropped(drops(reason, at, 50 * MS));
        }
        run
    }

    #[test]
    fn claimed_is_what_the_thread_did_from_an_empty_queue_to_the_last_drop() {
        let run = run(FULL).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(DISK), claim.dropped, claim.waits), (200 * MS, 400, 4));
        assert!(claim.doubts.is_empty());
        assert!(claim.chain[1].text.contains("thread-10"), "{:?}", claim.chain);
        assert!(claim.ruled_out.iter().any(|other| other.cause == "cpu-runqueue"));
    }

    #[test]
    fn a_wait_for_datagrams_is_no_stall() {
        let receive = Account::Blocked(Blocked::SocketReceive);
        let run = RunBuilder::new()
            .thread(10, 10, &[(receive, SECOND)])
            .interval(10, receive, 0, SECOND, None)
            .dropped(drops(FULL, 14 * MS, 50 * MS))
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.total(), claim.dropped, claim.doubts.len()), (0, 100, 1));
    }

    #[test]
    fn other_drops_are_not_this() {
        let run = run("UDP_CSUM").build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no datagram"));
    }
}
