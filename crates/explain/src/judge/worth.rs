//! Whether a claim explains enough to be named.
//!
//! A claim becomes a finding only if it explains enough:
//! - at least 10 ms in all (less goes unnoticed), and either
//! - at least 5 % of the wall time of the watched threads; 10 % for want of a CPU where CPUs were
//!   idle for most of the time: short waits are then where the scheduler puts whom it wakes (those of
//!   less than 100 us on average, where CPUs were idle for a tenth of the time, or of less than a slice,
//!   where they were for half of it, have to take a quarter of the time of the slowest requests, and in
//!   these 5 % of the recording's length), or
//! - for programs with many idle threads: a fifth of a CPU all the time, and a quarter of all that
//!   the threads used, spent on work that could be avoided, or
//! - for programs that mostly wait for work: at least 25 % of the time in which their threads
//!   worked or wanted to, at least 1 % of the length of the recording, and waits of at least
//!   100 us on average. The last excludes the ordinary price of a wake-up, which an idle program
//!   pays before each of its short turns on a CPU. It also has to be 1 % of the wall time, of all
//!   threads or of one thread or process: what is less leads nowhere; and 5 % of the time of the
//!   slowest requests, where these are known, or
//! - for one busy thread or process among others: a tenth of the time in which it worked or was
//!   wanted, if that is at least half of the recording, in waits of 100 us (of any length, for a
//!   device or a fork), those of a process not all in one moment of less than 5 % of the recording;
//!   or, in such of 1 ms on average, of one thread of a server that was wanted for a tenth of it,
//!   and 2.5 % of its length: all that it serves wait for it; or, in such of 1 ms, a quarter of what threads
//!   of a real-time policy wanted that it takes all of its time from, and 1 % of the recording.
//!
//! A cause that makes a whole process stand still has to do so for 5 % of the length of the recording.
//!
//! A cause that strikes once in the life of a process has to have made one stall of 2 ms: messages
//! are lost in that time, and it is no part of anything.
//!
//! A claim below that stays part of the unexplained time. One through which packets were dropped is
//! always a finding: what they cost is elsewhere.
//!
//! A cause that makes requests wait is judged by them: a quarter of the time of the slowest ones of a port
//! (ten at least) or of all, and 5 % of the length of the recording.
//!
//! A cause of late ticks has to explain 5 % of their lateness.
//!
//! A part of a run that was asked about (`part/`) may be short and still deserve its cause: there
//! a claim has to be 5 % of the lost time of the part, and 0.5 % of the part's length.

use super::hurt::Share;
use super::requests::FEWEST;
use super::{concentration, hurt, requests};
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::cause::{Claim, OfRequests};
use crate::text::{duration, percent, share};
use model::units::deviation;
use model::{FlowKind, QueueSecond, RequestCost, SocketKind, TracedProgram};

pub(super) const FLOOR_NS: u64 = 10_000_000;
const FLOOR_MEAN_NS: u64 = 100_000;
const FLOOR_STALL_NS: u64 = 1_000_000;
/// The part of the lateness of ticks that a cause of it has to explain.
const FLOOR_OF_TICKS: f64 = 0.05;
const FLOOR_ONCE_NS: u64 = 2_000_000;
/// What a cause of waiting requests takes of their time at least.
pub(crate) const LEAST_OF_REQUESTS: f64 = 0.25;
/// Less than this part of the wall time does not lead.
const BAR: u64 = 100;

/// Which part of the rule at the top of this file a claim does not meet, with its figures.
pub(super) fn shortfall(case: &Case, claim: &Claim) -> Option<String> {
    if let Some(late) = &claim.late {
        let share = deviation(late.share);
        return (late.share < FLOOR_OF_TICKS).then(|| {
            format!("{share} of the lateness is less than {}", deviation(FLOOR_OF_TICKS))
        });
    }
    let lost = claim.lost.total();
    if claim.dropped > 0 {
        return None;
    }
    if case.scope().is_some() {
        return shortfall_in_part(case, lost);
    }
    if claim.longest_ns >= FLOOR_ONCE_NS {
        return None;
    }
    if stands_still(case, claim) {
        return None;
    }
    if claim.of_placement && !takes_much_of_requests(case, claim) {
        return Some(format!(
            "{} in waits of {} on average while CPUs were idle is where the scheduler puts whom it \
             wakes, and no quarter of the time of the slowest requests, with 5 % of the recording's \
             length",
            duration(lost),
            duration(lost / claim.waits.max(1))
        ));
    }
    if let Some(of) = &claim.requests {
        return shortfall_of_requests(case, of, lost);
    }
    if lost < FLOOR_NS {
        return Some(format!("{} is less than {}", duration(lost), duration(FLOOR_NS)));
    }
    let is_part = |fraction: u64, whole: u64| lost >= whole / fraction;
    let needed = if claim.spare_cpus { 10 } else { 20 };
    let busy_program = is_part(needed, case.wall_ns);
    let long_waits = claim.is_stall || lost / claim.waits.max(1) >= FLOOR_MEAN_NS;
    let idle_program = is_part(4, case.active_ns())
        && is_part(100, case.run.length_ns())
        && long_waits
        && is_above_bar(case, claim)
        && is_felt(case, claim);
    let hurts_one = long_waits && hurts_a_busy_one(case, claim)
        || stalls_one(case, claim)
        || is_urgent(case, claim);
    if busy_program || idle_program || is_dear_work(case, claim) || hurts_one {
        return None;
    }
    Some(format!(
        "{} is {} of the wall time ({} are needed) and {} of the time in which the threads \
         worked or wanted to (25 % are, with 1 % of the recording's length and waits of 100 us on \
         average; here {} and {}); nor is it a tenth of what one busy thread or process wanted, a \
         quarter of what one of real time did, or avoidable work of a fifth of a CPU and a quarter of their CPU time",
        duration(lost),
        percent(lost, case.wall_ns),
        percent(1, needed),
        percent(lost, case.active_ns()),
        percent(lost, case.run.length_ns()),
        duration(lost / claim.waits.max(1))
    ))
}

/// A fifth of a CPU all the time, and a quarter of all that the threads used, is work that could be avoided.
fn is_dear_work(case: &Case, claim: &Claim) -> bool {
    let avoidable = claim.lost.sum_of(|account| class(account) == Class::Work);
    let work = case.accounts.sum_of(|account| class(account) == Class::Work);
    avoidable >= case.run.length_ns() / 5 && avoidable >= work / 4 && avoidable > 0
}

/// The same of a claim that knows what it takes of requests.
fn shortfall_of_requests(case: &Case, of: &OfRequests, lost: u64) -> Option<String> {
    let (length, slowest) = (case.run.length_ns(), &of.slowest);
    // What is taken of all is counted of each request, also of those that were not kept.
    let is_felt = slowest.of >= FEWEST && slowest.share() >= LEAST_OF_REQUESTS;
    let is_of_all = slowest.of >= FEWEST / 2 && of.of_all >= LEAST_OF_REQUESTS;
    let is_enough = (is_felt || is_of_all) && lost >= length / 20;
    (!is_enough).then(|| {
        format!(
            "it takes {} of the time of the {} slowest requests{}, and {} of that of all (25 % of \
             {FEWEST} slow ones or of all are needed), and {} is {} of the recording's length (5 % \
             are)",
            share(slowest.share()),
            slowest.of,
            slowest.of_port(),
            share(of.of_all),
            duration(lost),
            percent(lost, length)
        )
    })
}

/// Where the slowest requests are known, a cause of a program that mostly waits for work takes a
/// twentieth of their time at least.
fn is_felt(case: &Case, claim: &Claim) -> bool {
    claim.after_answers
        || requests::of(case, claim).is_none_or(|cost| cost.ns >= cost.total_ns / 20)
}

fn takes_much_of_requests(case: &Case, claim: &Claim) -> bool {
    let is_much = |cost: RequestCost| {
        cost.share() >= LEAST_OF_REQUESTS && cost.ns >= case.run.length_ns() / 20
    };
    requests::of(case, claim).is_some_and(is_much)
}

/// A process stood still for a twentieth of the recording at least: most of its threads may have had
/// nothing to do, and all that came meanwhile waited.
fn stands_still(case: &Case, claim: &Claim) -> bool {
    let stood = claim.stood_still_ns;
    stood >= FLOOR_NS && stood >= case.run.length_ns() / 20 && claim.lost.total() >= FLOOR_NS
}

/// At least 1 % of the wall time: of all threads, or of one thread or process.
fn is_above_bar(case: &Case, claim: &Claim) -> bool {
    let is_part = |part: u64, whole: u64| part > 0 && part >= whole / BAR;
    is_part(claim.lost.total(), case.wall_ns)
        || hurt::shares(case, claim).any(|share| is_part(share.claimed_ns, share.wall_ns))
}

/// At least 1 % of the wall time, or of what one thread or process wanted, or dear work, which many idle
/// threads would make a small part of both: less is named, where it struck at once, and does not lead.
pub(super) fn can_lead(case: &Case, claim: &Claim) -> bool {
    let is_part = |part: u64, whole: u64| part > 0 && part >= whole / BAR;
    claim.late.is_some()
        || claim.dropped > 0
        || stands_still(case, claim)
        || claim.requests.is_some()
        || is_dear_work(case, claim)
        || is_part(claim.lost.total(), case.wall_ns)
        || hurt::shares(case, claim).any(|share| is_part(share.claimed_ns, share.wanted_ns))
}

/// At least a tenth of what one thread or process wanted that is busy for half of the recording. A
/// process of many threads that all wanted something in one moment, as when they end, is not.
fn hurts_a_busy_one(case: &Case, claim: &Claim) -> bool {
    let is_busy = |wanted_ns: u64| wanted_ns > 0 && wanted_ns >= case.run.length_ns() / 2;
    let mut hurt = hurt::shares(case, claim)
        .filter(|share| is_busy(share.wanted_ns) && share.claimed_ns >= share.wanted_ns / 10)
        .peekable();
    let when = hurt.peek().and_then(|_| concentration::of(case, claim));
    let is_moment = when.is_some_and(|when| when.to_ns - when.from_ns < case.run.length_ns() / 20);
    hurt.any(|share| share.tid.is_some() || !is_moment)
}

/// At least a tenth of what one thread of a server wanted, in stalls: whoever
/// it serves waits for each of them, though it has little to do in between.
fn stalls_one(case: &Case, claim: &Claim) -> bool {
    let length = case.run.length_ns();
    let is_enough = |share: &Share| {
        share.tid.is_some()
            && is_server(case, share.tgid)
            && share.claimed_ns >= share.wanted_ns / 10
            && share.claimed_ns >= length / 40
    };
    claim.is_stall
        && claim.lost.total() / claim.waits.max(1) >= FLOOR_STALL_NS
        && hurt::shares(case, claim).any(|share| is_enough(&share))
}

/// It takes much of what threads of a real-time policy wanted, in waits of a millisecond.
fn is_urgent(case: &Case, claim: &Claim) -> bool {
    let lost = claim.lost.total();
    claim.is_urgent
        && lost / claim.waits.max(1) >= FLOOR_STALL_NS
        && lost >= case.run.length_ns() / BAR
}

/// It answers requests, or others may connect to it: what they send may have no answer.
fn is_server(case: &Case, tgid: u32) -> bool {
    let answers = |program: &TracedProgram| {
        program.tgid == tgid && program.flows.iter().any(|flow| flow.kind == FlowKind::Request)
    };
    let listens = |second: &QueueSecond| {
        second.socket.tgid == tgid && second.socket.kind == SocketKind::TcpListening
    };
    case.run.messages.programs.iter().any(answers) || case.run.sockets.queues.iter().any(listens)
}

/// The same of a part of a run.
fn shortfall_in_part(case: &Case, lost: u64) -> Option<String> {
    let (all, length) = (case.lost.total(), case.run.length_ns());
    if lost > 0 && lost >= all / 20 && lost >= length / 200 {
        return None;
    }
    Some(format!(
        "{} is {} of the {} lost here (5 % are needed) and {} of its length of {} (0.5 % are)",
        duration(lost),
        percent(lost, all),
        duration(all),
        percent(lost, length),
        duration(length)
    ))
}
