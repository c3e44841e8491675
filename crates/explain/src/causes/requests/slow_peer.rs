//! slow-peer: threads, or requests, wait for the answer of another process or thread.
//!
//! A thread that has sent a request to a local socket, or has handed work to another thread (by a
//! queue, an eventfd, a pipe, a message, a signal), and waits for the answer has nothing else to
//! do: unlike the wait of a server for its next request, that is lost time. What the other one
//! did meanwhile says why: it worked on this request or on those before, slept, waited for a disk, for
//! a CPU, or for a third one. The fix is there, not in the thread that waits.
//!
//! A proxy or an application that waits for many answers at once, by epoll, looks idle. The requests
//! that it works on meanwhile, or the calls that it has sent, show that it waits for answers.
//!
//! # Evidence
//!
//! Waits in recv, read or poll for a socket that this side has connected, after a send on it, which
//! a thread of this host ended (of a pair, socketpair() or sockets of datagrams that are connected to each
//! other, who sends first asks: of one that is older than the recording the first transfer that is seen may be
//! an answer); of two pipes, one for each way, in read, after a write, if a child process ended the wait that
//! had itself waited last at the other one (a coprocess: popen2, coproc of bash; only while system calls are
//! recorded); divided by what that thread did meanwhile, and whoever it waited
//! for. Without a connection: waits that a worker thread ended. A thread counts as a worker if the
//! first thing it did was an idle wait, and the thread that ended that wait later waits for it.
//! What a worker computes for the one that waits is work, unless it never rests and several wait
//! for it at a time. Waits for room in a pipe count where somebody computes at their end: a stage
//! of a pipeline that is slower than those before it. Of a queue inside a program nothing but names
//! tells whether a thread waits for room or for work: sleeps on a futex count whose innermost function
//! with such a name is one that puts (put, send, push, offer, enqueue, publish), or that waits for what was
//! asked for (result, get of a future). So do waits for child processes of one name, or
//! for what they write into a pipe, of three or more that the waiting process or a child of it has
//! started one after the other; the command `sleep` is the timer of the script that calls it, and what
//! children compute is their parent's own work unless somebody waits for that (it serves requests); an event
//! loop counts if children ended nine of ten of its waits. Where requests are known: of the slowest ones
//! the time from the send of a call that was made for them until its answer arrived, at least a
//! quarter of their time and a twentieth of the recording. Where only so many calls are on their way at a
//! time (the connections of a pool, a maxconn), these for at least half of it, and more requests are in
//! progress, the requests wait for their turn. Else the waits of a process for answers
//! to what it has sent, of a millisecond (the run's threshold) and more on average; where a thread sends
//! for others (ZeroMQ), what these wait for it. Who does nearly nothing between answers may ask for
//! something to do: so of brokers (Redis, RabbitMQ, Kafka and others, by program or port), and of a
//! recorded peer that has no work with the calls for three quarters of their time, nothing is said, and of
//! others with a doubt. Of a peer that
//! is not recorded its address is known, and its process if it is on this host: record it, too (-a,
//! or --follow for children), to see what it does. While a recorded peer has nothing to do until somebody
//! else asks it for something, who asked it waits for work: for a job in a queue (BRPOP).
//!
//! A peer that does not listen refuses connections (ECONNREFUSED, also where a socket that does not block
//! says so when it is asked: SO_ERROR); who sleeps then and connects to the same address and port again
//! waits for it. Between the two up to 64 other calls may be made (a name is looked up, a socket made and
//! closed). A path of a socket that is not there (ENOENT) counts only if the connection is made in the end:
//! many programs look in vain for a service that they can do without (nscd, syslog). So do child processes of
//! a script that are refused (until nc -z db 5432; do sleep 1; done), with the command `sleep` between two of
//! one name, and without the address. Not seen is a Go program whose sleep and connection are on different
//! threads, nor an event loop that serves others meanwhile.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=network,read,write -p PID      # how long answers take
//!     perf sched record -a -- sleep 5; perf sched timehist -w -p PEER   # what the peer did meanwhile
//!     strace -f -Z -tt -e trace=connect -p PID; ss -ltnp   # connections that are refused; who listens
//!
//! # Sources
//!
//! net/core/sock.c (sock_def_readable); net/unix/af_unix.c; tcp(7).

use model::{Account, Accounts, Blocked, ChainEnd, RecorderPart, ThreadAccounts};

use crate::case::Case;
use crate::case::answers::{Answers, ROOM};
use crate::case::beyond::Whose;
use crate::case::chain_ends::is_holders;
use crate::case::in_words::in_words;
use crate::case::looks::{FIX_OF_LOOKS, HasIt, did, doubt_looks};
use crate::case::purposes::Purpose;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::requests::{calls, refused};
use crate::text::{counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::SLOW_PEER,
    title: "requests or threads wait for the answers of another process or thread",
    fix: "Look at the process or thread that answers: record it, too, and let it answer sooner.",
    reproduce: "mysteries/bin/slow-peer-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls]),
    look_alikes: &[LookAlike {
        cause: ids::NAGLE_DELACK,
        tell_apart: "see when the answer is sent ('strace -f -tt -e trace=network -p PEER'): a \
                     delayed segment has been sent 40 ms before it arrives",
        mutual: false,
    }],
    symptom: true,
    examine,
};

/// A queue would fill as well.
pub(crate) const FIX_OF_PIPELINE: &str = "The stage that is waited for limits the pipeline: make it cheaper, give it \
                               more threads or processes, or send it less. Room in the pipe or a \
                               queue only helps where its input comes in bursts.";
const FIX_OF_CHILDREN: &str = "Look at what the child processes do, and let them do it sooner. Where \
                               it is their start that takes long, keep one running and give it the \
                               work; where nothing else waits for the first, start several at a time.";
/// Pairs of processes worth a line.
const PAIRS_SHOWN: usize = 3;

fn own_ns(answers: &Answers) -> u64 {
    answers.ends.part_of(answers.ns, |end| answers.is_lost(end) && is_holders(end))
}

/// What the peer did for most of the time that is claimed.
fn main_end(answers: &Answers) -> ChainEnd {
    let ends = answers.ends.by_end().filter(|(end, _)| answers.is_lost(*end) && is_holders(*end));
    ends.max_by_key(|(_, ns)| *ns).map_or(ChainEnd::Unknown, |(end, _)| end)
}

/// Connections that are refused are shown where they are more.
fn examine(case: &Case) -> Verdict {
    match (of_answers(case), refused::examine(case)) {
        (Ok(answers), Some(refused)) if answers.lost.total() < refused.lost.total() => Ok(refused),
        (Err(_), Some(refused)) => Ok(refused),
        (answers, _) => answers,
    }
}

/// What is known by name alone, because it was not recorded or is waited for by epoll, is shown where it
/// is more.
fn of_answers(case: &Case) -> Verdict {
    let recorded = of_recorded(case);
    match (recorded, calls::examine(case)) {
        (Ok(recorded), Some(calls))
            if calls::is_felt(&calls) && recorded.lost.total() < calls.lost.total() =>
        {
            Ok(calls)
        }
        (Err(_), Some(calls)) => Ok(calls),
        (recorded, _) => recorded,
    }
}

/// Who did that; another process may have the peer's name.
fn whose(case: &Case, first: &Answers, end: ChainEnd) -> Whose {
    let run = case.whole();
    if end != ChainEnd::Unknown && !first.ends.is_known_at(end) {
        return Whose::Unknown;
    }
    let Some(who) = first.ends.who_was_at(end, run) else { return Whose::Holders };
    if who != first.peer {
        return Whose::Beyond(who);
    }
    let is_peer = |tid: u32| {
        first.is_of_children() || run.threads.iter().any(|t| t.tid == tid && is_peers(first, t))
    };
    let beyond = first.ends.mostly_at(end, |tid| !is_peer(tid));
    beyond.map_or(Whose::Holders, |tid| Whose::Beyond(format!("{who} (tid {tid})")))
}

fn of_recorded(case: &Case) -> Verdict {
    let slow: Vec<&Answers> = case.answers.iter().filter(|pair| own_ns(pair) > 0).collect();
    let Some(first) = slow.iter().max_by_key(|pair| own_ns(pair)) else {
        return Err(absent(case));
    };
    let lost: Accounts = slow.iter().map(|pair| (pair.account, own_ns(pair))).collect();
    let count = slow.iter().fold(0u64, |sum, pair| sum.saturating_add(pair.count));
    let all = lost.total();
    let peer = first.peer_name();
    let end = main_end(first);
    let (what, until) = waited_for(first);
    let waiter = case.process_name(first.tgid);
    let has_it = HasIt::of(&first.ends, end, first.peer_tgid, case.whole());
    let did = did(end, has_it.as_ref());
    let which = whose(case, first, end).which(&did);
    let title = format!("{waiter} waits for {what}{peer}, {which}");
    let mut claim = Claim::new(title, lost, count);
    if end == ChainEnd::Cpu {
        claim.peers_work = work_of(case, first);
    }
    claim.fix = match first.account {
        _ if is_for_room(first) => Some(FIX_OF_PIPELINE),
        _ if first.is_of_children() => Some(FIX_OF_CHILDREN),
        _ if has_it.is_some() => Some(FIX_OF_LOOKS),
        _ => fix(end),
    };
    claim.mechanism(format!(
        "asleep for {} until {until}: {}, mean {}",
        duration(all),
        counted(count, "wait"),
        mean(all, count)
    ));
    if let Some(ends) = first.ends.in_words(&format!("meanwhile {peer}, or whoever it waited for,"))
    {
        claim.trigger(ends);
    }
    if let Some(longest) = first.ends.longest_in_words(case.whole()) {
        claim.trigger(longest);
    }
    evidence(case, &slow, first, &mut claim);
    claim.exclude("waiting for the next request", why_not_idle(first));
    rule_out(first, &mut claim);
    doubt(first, &mut claim);
    doubt_looks(has_it.as_ref(), &mut claim);
    Ok(claim)
}

fn is_for_room(first: &Answers) -> bool {
    first.account == ROOM || matches!(first.named, Some((Purpose::Room, _)))
}

/// What it waited for, and until when.
fn waited_for(first: &Answers) -> (&'static str, &'static str) {
    match first.account {
        ROOM => ("room in a pipe or terminal to ", "there was room for what comes next"),
        _ if is_for_room(first) => ("room in a queue to ", "there was room for what comes next"),
        _ if first.is_of_children() => ("", "the child ended, or had written"),
        _ if first.named.is_some() => ("answers of ", "what had been asked for was there"),
        _ => ("answers of ", "the answer to what had been sent came"),
    }
}

/// Where it was seen.
fn shown_by(pair: &Answers) -> &'static str {
    match pair.account {
        _ if pair.is_of_children() => "waits of the parent, waker at sched_waking, forks",
        _ if pair.named.is_some() => "user stacks of waits, waker at sched_waking",
        ROOM => "waits for room in a pipe or terminal, waker at sched_waking",
        _ if pair.worker_tid.is_some() => "waits that this thread ended, waker at sched_waking",
        Account::Blocked(Blocked::PipeRead) => {
            "writes to one pipe and waits for another, waker at sched_waking"
        }
        _ => "sends and waits of one socket, waker at sched_waking",
    }
}

fn evidence(case: &Case, slow: &[&Answers], first: &Answers, claim: &mut Claim) {
    for pair in slow.iter().take(PAIRS_SHOWN) {
        claim.saw(
            format!(
                "{} waited for {}: {}, {}, mean {}, longest {}; {}",
                case.process_name(pair.tgid),
                pair.peer_name(),
                counted(pair.count, "wait"),
                duration(pair.ns),
                mean(pair.ns, pair.count),
                duration(pair.max_ns),
                pair.ends.in_words("it").unwrap_or_default()
            ),
            shown_by(pair),
        );
    }
    let longest = case.run.outliers.iter().filter(|o| {
        o.kind.is_own_time()
            && o.tgid == first.tgid
            && o.blocked.map(Account::Blocked) == Some(first.account)
            && o.waker.as_ref().is_some_and(|waker| first.is_ended_by(waker))
            // A thread of its own ends waits for other things as well.
            && (first.tgid != first.peer_tgid || first.objects.contains(&o.object))
    });
    claim.saw_if(
        longest.max_by_key(|o| o.duration_ns).map(|o| in_words(case, o)),
        "longest wait for an answer",
    );
}

/// A thread of the peer: its worker if that alone answers, and of children one of their name.
fn is_peers(peer: &Answers, thread: &ThreadAccounts) -> bool {
    match peer.worker_tid {
        _ if peer.is_of_children() => thread.tgid != peer.tgid && thread.comm == peer.peer,
        Some(worker) if peer.tgid == peer.peer_tgid => thread.tid == worker,
        _ => thread.tgid == peer.peer_tgid,
    }
}

/// What it spent on a CPU.
fn work_of(case: &Case, peer: &Answers) -> Accounts {
    let threads = case.run.threads.iter().filter(|thread| is_peers(peer, thread));
    threads.flat_map(|thread| thread.accounts.iter().filter(|(a, _)| a.is_running())).collect()
}

fn why_not_idle(first: &Answers) -> String {
    let why = match (first.worker_tid, &first.named) {
        _ if first.account == ROOM => "they have something to write",
        _ if first.is_of_children() => "it waits for processes that it has started itself",
        (_, Some((Purpose::Room, function))) => {
            return format!("{function}, in which they wait, puts something into a queue");
        }
        (_, Some((_, function))) => {
            return format!("{function}, in which they wait, is for what they have asked for");
        }
        (None, None) => {
            "only sockets that the waiting side has connected count, after a send on them"
        }
        (Some(_), None) => {
            "the one that answers began its life with a wait for work, which one of those ended \
             that wait for it"
        }
    };
    why.to_owned()
}

fn absent(case: &Case) -> Absent {
    let not_recorded = case.run.sums.waits.iter().filter(|wait| wait.asked);
    let (count, ns) = not_recorded.fold((0u64, 0u64), |(count, ns), wait| {
        (count.saturating_add(wait.count), ns.saturating_add(wait.ns))
    });
    Absent(match count {
        0 => "no thread waited for the answer to what it had sent on a socket".to_owned(),
        n => format!(
            "{} for answers took {}, and no recorded thread was at their end",
            counted(n, "wait"),
            duration(ns)
        ),
    })
}

/// What to do follows what the peer did.
fn fix(end: ChainEnd) -> Option<&'static str> {
    match end {
        ChainEnd::Cpu => Some(
            "The peer works on a CPU all that time: make it do less for an answer, or give it more \
             threads if it handles one request after the other.",
        ),
        ChainEnd::Timer | ChainEnd::Timeout => Some(
            "The peer sleeps before it answers, by a timer of its own or until a timeout (a pause, \
             a batch that waits to be full, a retry): take that out of the way of requests.",
        ),
        ChainEnd::Disk | ChainEnd::Fault => Some(
            "The peer waits for a disk before it answers: keep what it reads in memory, and take \
             writes (fsync, logs) out of the way of requests.",
        ),
        _ => None,
    }
}

fn rule_out(first: &Answers, claim: &mut Claim) {
    let total = first.ends.total();
    for (cause, end, what) in [
        (ids::CPU_RUNQUEUE, ChainEnd::RunQueue, "waited for a CPU"),
        (ids::CGROUP_THROTTLE, ChainEnd::Throttled, "was throttled"),
        (ids::STOPPED_OR_TRACED, ChainEnd::Stopped, "was stopped"),
    ] {
        let ns = first.ends.sum_of(|other| other == end);
        // What is not known may have been that, too.
        if ns + first.ends.unknown() < total / 5 {
            claim.rule_out(
                cause,
                format!("the peer {what} for {} of {} only", duration(ns), duration(total)),
            );
        }
    }
}

fn doubt(first: &Answers, claim: &mut Claim) {
    if first.named.is_some() {
        claim.doubt(0.8, "what they wait for is known by the names of functions alone");
    }
    let known = first.ends.sum_of(|end| !matches!(end, ChainEnd::Unknown | ChainEnd::Unwatched));
    let total = first.ends.total();
    if known < total / 10 * 9 {
        claim.doubt(
            0.8,
            &format!(
                "what the peer did is known for {} of the waiting only",
                percent(known, total)
            ),
        );
    }
}

#[cfg(test)]
mod tests;
