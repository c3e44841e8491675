//! udp-rcvbuf-stall: a receiver was busy elsewhere until its socket's buffer was full, and what
//! came then was dropped.
//!
//! The kernel queues datagrams in the socket, up to the size of its receive buffer. Nothing waits
//! and nothing fails: the sender does not learn that the queue is full, and the receiver sees a
//! gap in the sequence numbers.
//!
//! # Evidence
//!
//! Datagrams dropped at a socket of the target for a full buffer (kfree_skb with the reason, or the
//! socket's own count); the time in which its queue had filled before (looked at every 20 ms or
//! more); and what the receiving thread did in that time: its longest interval off the socket, and
//! the cause behind that. Waits of recorded threads for answers to what they had sent, which a timeout
//! ended, count as many as datagrams were dropped.
//!
//! # Without whylag
//!
//!     ss -uamn                                   # skmem: d and a number are drops
//!     nstat -az UdpRcvbufErrors UdpInErrors
//!     perf trace -a -e skb:kfree_skb
//!
//! # Sources
//!
//! socket(7) (SO_RCVBUF); udp(7); net/ipv4/udp.c.

use std::collections::BTreeSet;

use model::{Accounts, ChainEnd, Drops, Link, RecorderPart, Role, SocketKind, part_of};

use crate::case::Case;
use crate::case::held_sends::{self, Sends};
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::network::causes_of_stalls::shared_cause;
use crate::causes::network::rate_limit_burst;
use crate::causes::network::receivers::Stall;
use crate::patterns::rhythm;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::UDP_RCVBUF_STALL,
    title: "a UDP receiver stalls until its socket's buffer is full",
    fix: "Remove the stall from the thread that receives (give the work to another thread), and \
          make the buffer hold what comes in the longest stall that remains: SO_RCVBUF up to \
          net.core.rmem_max, SO_RCVBUFFORCE with CAP_NET_ADMIN. A larger buffer alone turns loss \
          into delay.",
    reproduce: "mysteries/bin/udp-rcvbuf-stall-faulty 5",
    needs: Needs::parts(&[
        RecorderPart::Threads,
        RecorderPart::SystemCalls,
        RecorderPart::Sockets,
        RecorderPart::Drops,
    ]),
    look_alikes: &[
        LookAlike {
            cause: ids::CPU_RUNQUEUE,
            tell_apart: "see what the receiving thread did while the queue filled ('whylag explain \
                         --window' from the time that 'whylag show' gives to the drops): without a \
                         CPU it was runnable",
            mutual: false,
        },
        LookAlike {
            cause: ids::RT_STARVATION,
            tell_apart: "see who ran on the receiver's CPU while the queue filled ('whylag explain \
                         --window'): a real-time thread is starvation",
            mutual: false,
        },
        LookAlike {
            cause: ids::CGROUP_THROTTLE,
            tell_apart: "read nr_throttled in cpu.stat of the receiver's cgroup before and after: \
                         a quota counts there, a stall of its own does not",
            mutual: false,
        },
    ],
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
    let stall = Stall::of(case, windows(&drops));
    let socket = &worst.socket;
    let title = format!(
        "{} lost {} at {socket}: its receiver stalled until the buffer was full",
        case.process_name(socket.tgid),
        counted(packets, "datagram")
    );
    let unanswered = Unanswered::of(case, packets);
    let mut lost = stall.accounts.clone();
    lost.merge(&unanswered.lost);
    let mut claim = Claim::new(title, lost, drops.len() as u64);
    claim.takes_idle = unanswered.count > 0;
    claim.dropped = packets;
    claim.mechanism(format!(
        "the buffer of {} bytes was full {}: {} in all, at most {} at once",
        count(worst.limit),
        counted(drops.len() as u64, "time"),
        counted(packets, "datagram"),
        count(worst.count)
    ));
    if unanswered.count > 0 {
        claim.mechanism(format!(
            "who had asked waited in vain, until a timeout: {}, {} in all",
            counted(unanswered.count, "wait"),
            duration(unanswered.lost.total())
        ));
    }
    say_what_stalled(case, &stall, &mut claim);
    claim.saw(
        format!(
            "each time the queue filled for {} on average before the first was dropped; at most {} \
             of {} bytes were seen in it",
            mean(drops.iter().map(|d| d.first_ns.saturating_sub(d.filling_ns)).sum(), claim.waits),
            count(drops.iter().map(|drops| drops.queued).max().unwrap_or(0)),
            count(worst.limit)
        ),
        "socket iterator, each 20 ms or more",
    );
    let reason = if worst.reason.is_empty() { "not reported" } else { &worst.reason };
    claim.saw(format!("reason: {reason}"), "tracepoint kfree_skb, or the socket's own count");
    claim.saw_if(stall.longest().map(|longest| in_words(case, longest)), "longest stall");
    let times: Vec<u64> = drops.iter().map(|drops| drops.first_ns).collect();
    claim.saw_if(rhythm::of_second(case.run, &times), "Rayleigh's test of the first drops");

    rule_out(case, &stall, &mut claim);
    Ok(claim)
}

/// Waits for answers that did not come in the time that recorded threads had for them.
#[derive(Default)]
struct Unanswered {
    count: u64,
    lost: Accounts,
}

impl Unanswered {
    /// No more of them than packets were dropped: each of these may have been a request.
    fn of(case: &Case, packets: u64) -> Unanswered {
        let mut all = Unanswered::default();
        for wait in case.run.sums.waits.iter().filter(|wait| wait.asked && wait.waker_tgid == 0) {
            let ns = wait.ends_in(|end| end == ChainEnd::Timeout);
            if ns > wait.ns / 2 {
                all.count = all.count.saturating_add(wait.count);
                all.lost.add(wait.account, ns);
            }
        }
        let of_dropped = |(account, ns)| (account, part_of(ns, packets.min(all.count), all.count));
        let lost = all.lost.iter().map(of_dropped).collect();
        Unanswered { count: all.count.min(packets), lost }
    }
}

/// The receiver's stalls, and what stood behind them.
fn say_what_stalled(case: &Case, stall: &Stall, claim: &mut Claim) {
    let stalled = stall.accounts.total();
    let part = percent(stalled, stall.windows_ns);
    if let Some(held) = stall.held.first() {
        claim.mechanism(format!(
            "while the queue filled, tid {} did not read: it held {} back, {} in all ({part} of \
             that time)",
            held.tid,
            counted(stall.held.len() as u64, "send"),
            duration(stalled)
        ));
        if let Some(call) = held_sends::waited_in(held) {
            let sends = Sends::of(case.whole(), held.tgid, call);
            let trigger = rate_limit_burst::reached(case.whole(), held.tgid, &sends);
            claim.caused_by(Role::Trigger, ids::RATE_LIMIT_BURST, trigger);
        }
        return;
    }
    let Some(longest) = stall.longest() else {
        claim.trigger("no long wait or call was seen while the queue filled".to_owned());
        claim.doubt(0.6, "the receiver may be computing, or too slow for what comes");
        return;
    };
    let text = format!(
        "while the queue filled, {} (tid {}) did not read: {} ({part} of that time), mostly {}",
        longest.comm,
        longest.tid,
        duration(stalled),
        mostly(&stall.accounts)
    );
    let Some(stall_cause) = shared_cause(case, &stall.each) else {
        claim.trigger(text);
        return;
    };
    claim.mechanism(text);
    let (of, examined) = (count(stall_cause.of), count(stall_cause.examined));
    let mechanism = format!("{of} of {examined} stalls: {}", stall_cause.claim.title);
    claim.caused_by(Role::Mechanism, stall_cause.cause, mechanism);
    for link in stall_cause.claim.chain.into_iter().filter(|link| link.role == Role::Trigger) {
        let cause = link.cause.or_else(|| Some(stall_cause.cause.to_string()));
        claim.chain.push(Link { cause, ..link });
    }
}

fn rule_out(case: &Case, stall: &Stall, claim: &mut Claim) {
    let stalled = stall.accounts.total();
    let runnable = stall.accounts.sum_of(|account| account.is_waiting_for_cpu());
    if stalled > 0 && runnable < stalled / 5 {
        let because = format!(
            "of the stalls the receiver waited {} for a CPU: {}",
            percent(runnable, stalled),
            duration(runnable)
        );
        claim.rule_out(ids::CPU_RUNQUEUE, because);
    }
    let between = case.run.length_ns().saturating_sub(stall.windows_ns);
    claim.exclude(
        "a receiver that is too slow all the time",
        format!(
            "the queue was nearly empty before each time; {} of the run were without a full queue",
            percent(between, case.run.length_ns())
        ),
    );
}

fn is_overflow(drops: &Drops) -> bool {
    drops.socket.kind == SocketKind::Udp && (drops.reason == FULL || drops.reason.is_empty())
}

fn udp_sockets(case: &Case) -> u64 {
    let seconds = case.run.sockets.queues.iter();
    let udp = seconds.filter(|s| s.socket.kind == SocketKind::Udp).map(|s| s.socket.inode);
    udp.collect::<BTreeSet<_>>().len() as u64
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
    use crate::testing::{RunBuilder, SECOND, drops, held_send, interval, wait};
    use model::{Account, Blocked, Metric, Outlier, OutlierKind, Syscall};

    const MS: u64 = 1_000_000;
    const DISK: Account = Account::Blocked(Blocked::Disk);
    const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);
    const MAJOR: Account = Account::Blocked(Blocked::FaultMajor);

    /// Thread 10 receives; thread 11 of its process waits longer, but does not.
    fn run(reason: &str) -> RunBuilder {
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(RECEIVE, SECOND), (DISK, SECOND)])
            .thread(11, 10, &[(DISK, SECOND)]);
        for second in 0..4 {
            let at = second * SECOND + 14 * MS;
            run = run
                .interval(10, DISK, at, 60 * MS, None)
                .interval(11, DISK, at - 10 * MS, 90 * MS, None)
                .dropped(drops(reason, at, 50 * MS));
        }
        run
    }

    #[test]
    fn what_stood_behind_the_stall_is_named_with_its_trigger() {
        let mut run = RunBuilder::new().thread(10, 10, &[(RECEIVE, SECOND), (MAJOR, SECOND)]);
        for second in 0..3 {
            let at = second * SECOND + 14 * MS;
            let stall = Outlier {
                kind: OutlierKind::FirstCall,
                ..interval(10, MAJOR, at - 5 * MS, 60 * MS, None)
            };
            run = run.first_call(stall, "/opt/librate.so", Some("sched_yield@plt")).dropped(drops(
                FULL,
                at,
                50 * MS,
            ));
        }
        let run = run.build();
        let claim = examine(&Case::new(&run).asking(crate::catalogue::ALL)).unwrap();
        let causes: Vec<_> = claim.chain.iter().filter_map(|link| link.cause.as_deref()).collect();
        assert_eq!(causes, ["lazy-binding", "lazy-binding"], "{:?}", claim.chain);
        assert!(claim.chain[2].text.starts_with("3 of 3 stalls: "), "{:?}", claim.chain);
        assert!(claim.chain[3].text.contains("librate.so:rate_timer+0x9e3"), "{:?}", claim.chain);
        assert_eq!(
            crate::explain(&run).findings[0].cause,
            CAUSE.id.as_str(),
            "dropped packets come first"
        );
    }

    #[test]
    fn claimed_is_what_the_thread_did_from_an_empty_queue_to_the_last_drop() {
        let run = run(FULL).build();
        let claim = examine(&Case::new(&run).asking(crate::catalogue::ALL)).unwrap();
        assert_eq!((claim.lost.get(DISK), claim.dropped, claim.waits), (200 * MS, 400, 4));
        assert!(claim.doubts.is_empty());
        assert!(claim.chain[1].text.contains("thread-10"), "{:?}", claim.chain);
        assert!(claim.ruled_out.iter().any(|other| other.cause == "cpu-runqueue"));
    }

    #[test]
    fn a_receiver_that_waits_for_its_own_rate_limit_stalls() {
        let named = |name| Syscall::named(name).unwrap();
        let yields = Account::Syscall(named("sched_yield"));
        let run = RunBuilder::new()
            .thread(10, 10, &[(RECEIVE, SECOND), (yields, SECOND)])
            .values(Metric::HeldSend(named("sched_yield")), 5, &[MS; 40])
            .values(Metric::Syscall(named("sendto")), 5, &[2_000; 9_000])
            .event(held_send(10, 2 * MS, 20 * MS))
            .event(held_send(10, 30 * MS, 20 * MS))
            .dropped(drops(FULL, 14 * MS, 50 * MS))
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(yields), 28 * MS, "within the time in which the queue filled");
        let last = claim.chain.last().unwrap();
        assert_eq!(last.cause.as_deref(), Some("rate-limit-burst"), "{:?}", claim.chain);
        assert!(last.text.contains("40 of 9,000 sends"), "{last:?}");
    }

    #[test]
    fn who_has_asked_and_has_no_answer_until_a_timeout_has_lost_that_time() {
        let lost = |waits: u64, asked: bool| {
            let sum = model::WaitSum {
                asked,
                waker_tgid: 0,
                ends: [(ChainEnd::Timeout, 2 * SECOND)].into(),
                ..wait(20, RECEIVE, 0, waits, 2 * SECOND)
            };
            let run = RunBuilder::new()
                .thread(10, 10, &[(RECEIVE, SECOND)])
                .thread(20, 20, &[(RECEIVE, 4 * SECOND)])
                .wait(sum)
                .dropped(drops(FULL, 14 * MS, 50 * MS));
            let run = run.build();
            examine(&Case::new(&run)).unwrap().lost.total()
        };
        assert_eq!(lost(10, true), 2 * SECOND);
        assert_eq!(lost(400, true), SECOND / 2, "100 datagrams were dropped");
        assert_eq!(lost(10, false), 0, "a receiver with a timeout");
    }

    #[test]
    fn a_wait_for_datagrams_is_no_stall() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(RECEIVE, SECOND)])
            .interval(10, RECEIVE, 0, SECOND, None)
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
