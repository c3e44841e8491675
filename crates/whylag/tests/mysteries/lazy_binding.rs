//! Story 1: a stall that happens at most once in the life of a process, and the datagrams that it
//! loses.

use std::collections::BTreeSet;

use model::{Finding, ImportedCall, Outlier, OutlierKind, RecorderPart, Run, Standing};

use crate::Case;
use crate::common::disturbance::figures_are_asked_for;

const CAUSE: &str = "lazy-binding";
const CALL: &str = "sched_yield";
/// Seconds and lives of one process that executes itself.
const LIVES: [&str; 2] = ["12", "6"];
const FEW_LIVES: [&str; 2] = ["6", "3"];
const LIVES_OF_CHEAP: [&str; 2] = ["4", "2"];
/// The buffer holds 554 datagrams, of which 30 come in a millisecond.
const FILLS_NS: u64 = 18_000_000;

#[test]
fn lazy_binding() {
    let lives = if figures_are_asked_for() { LIVES } else { FEW_LIVES };
    let Some(faulty) = Case::record_as("lazy-binding-faulty", &[], &lives) else { return };
    let stalled = faulty.truth.get("stalled_lives");
    // A life whose limit is reached before its pages are reclaimed has no stall.
    let lives: u64 = lives[1].parse().unwrap();
    assert!((lives / 2..=lives).contains(&stalled), "{}", faulty.summary());
    let calls: Vec<&Outlier> = first_calls(&faulty);
    let lives: BTreeSet<usize> =
        calls.iter().map(|call| faulty.run.execs(call.tgid, call.start_ns)).collect();
    // It makes about as many calls as are recorded whole. In one of 24 recordings in which they were given up
    // one of three was missing, and it is not known why.
    let (are_all, all) = (has_all_calls(&faulty.run), first_calls_of_any(&faulty));
    let least = if are_all { stalled } else { stalled - 1 };
    assert!((least..=stalled).contains(&(lives.len() as u64)), "{stalled} stalled: {all:#?}");
    assert!(!are_all || lives.len() == calls.len(), "at most once in each life: {all:#?}");
    for call in &calls {
        assert!(call.comm == "rx-0" && call.first_call.unwrap().major_faults > 0, "{call:?}");
        // A clock read that an interrupt came after is a little older than the account it closes.
        let accounted = call.breakdown.total();
        assert!(accounted <= call.duration_ns && accounted * 100 > call.duration_ns * 99);
    }
    // The recorder looks within a second; a life may be over by then. librate also calls
    // __errno_location, perror and abort, if a send fails.
    let left: Vec<_> = calls.iter().filter_map(|call| call.first_call.unwrap().left).collect();
    assert!(left.len() * 2 > calls.len(), "{calls:#?}");
    assert!(left.iter().all(|left| (left.unbound, left.slots) == (3, 7)), "{left:?}");
    let took: u64 = calls.iter().map(|call| call.duration_ns).sum();
    let truth = faulty.truth.get("lost_ns");
    assert!(took <= truth + truth / 10, "{took} of {truth} ns");

    is_explained(&faulty, &calls);
    let what = "lazy-binding takes as long as the program says, and loses datagrams";
    if lives.len() as u64 == stalled && faulty.figures.judge(what) {
        assert!(took > truth / 2, "{took} of {truth} ns");
        chain_has_three_links(&faulty, &calls);
    }

    if !figures_are_asked_for() {
        return;
    }
    let Some(fixed) = Case::record_as("lazy-binding-fixed", &[], &["2"]) else { return };
    assert_eq!(first_calls(&fixed).len(), 0, "{}", fixed.summary());
    assert!(finding(&fixed, CAUSE).is_none(), "{}", fixed.summary());
    if fixed.figures.judge("lazy-binding loses no datagram with its fix") {
        assert!(finding(&fixed, "udp-rcvbuf-stall").is_none(), "{}", fixed.summary());
    }
}

/// Nothing tells when it leaves the linker then, but what it waits for there is seen.
#[test]
fn lazy_binding_without_system_calls() {
    let Some(faulty) = Case::record_as("lazy-binding-faulty", &["--cheap"], &LIVES_OF_CHEAP) else {
        return;
    };
    let calls = first_calls(&faulty);
    let stalled = faulty.truth.get("stalled_lives");
    let lives: BTreeSet<u32> = calls.iter().map(|call| call.tid).collect();
    let all = first_calls_of_any(&faulty);
    assert!(stalled > 0 && lives.len() as u64 == stalled, "{stalled} stalled: {all:#?}");
    for call in &calls {
        assert_eq!(call.breakdown.total(), call.duration_ns, "{call:?}");
    }
    let took: u64 = calls.iter().map(|call| call.duration_ns).sum();
    let truth = faulty.truth.get("lost_ns");
    assert!(took <= truth + truth / 10, "{took} of {truth} ns");
    if faulty.figures.judge("lazy-binding takes as long as the program says, without system calls")
    {
        assert!(took > truth / 2, "{took} of {truth} ns");
    }
}

/// The finding names who called what, how often in a life, and when in the second.
fn is_explained(faulty: &Case, calls: &[&Outlier]) {
    let Some(found) = finding(faulty, CAUSE) else {
        // All stalls together may take less than the 10 ms from which on a cause is told.
        let standing = faulty.standing(CAUSE);
        let is_claimed =
            matches!(&standing, Standing::BelowFloor { claimed_ns, .. } if *claimed_ns > 0);
        let is_quiet = faulty.figures.is_undisturbed("lazy-binding is told");
        assert!(is_claimed && !is_quiet, "{standing:?}: {}", faulty.summary());
        return;
    };
    let chain: Vec<&str> = found.chain.iter().map(|link| link.text.as_str()).collect();
    let call = chain.iter().find(|text| text.contains("librate.so:rate_timer+0x"));
    assert!(call.is_some_and(|text| text.contains("(after call sched_yield@plt)")), "{chain:?}");
    let excluded = found.ruled_out.iter().any(|other| other.cause == "file-major-fault");
    assert!(excluded, "{:?}", found.ruled_out);
    let seen: Vec<&str> = found.evidence.iter().map(|e| e.text.as_str()).collect();
    let lives = match calls.len() {
        1 => "1 first call in one process".to_owned(),
        lives => format!("{lives} lives of processes"),
    };
    assert!(
        seen.iter().any(|text| text.contains(&lives) && text.contains("each once")),
        "{seen:?}"
    );
    if calls.len() >= 5 {
        let phase = seen.iter().find(|text| text.contains("after the wall-clock second"));
        assert!(phase.is_some_and(|text| text.contains("(n = ")), "{seen:?}");
    }
}

/// udp-rcvbuf-stall <- lazy-binding <- rate-limit-burst, if the stalls were long enough to fill the
/// buffer.
fn chain_has_three_links(faulty: &Case, calls: &[&Outlier]) {
    let full = calls.iter().filter(|call| call.duration_ns > FILLS_NS + FILLS_NS / 5).count();
    if full == 0 {
        println!("no stall filled the buffer: {}", faulty.summary());
        return;
    }
    assert!(faulty.truth.get("missing") > 0, "{}", faulty.summary());
    let first = &faulty.findings[0];
    assert_eq!(first.cause, "udp-rcvbuf-stall", "{}", faulty.summary());
    let mut causes: Vec<&str> =
        first.chain.iter().filter_map(|link| link.cause.as_deref()).collect();
    causes.dedup();
    assert_eq!(causes, ["lazy-binding", "rate-limit-burst"], "{:#?}", first.chain);
}

fn finding<'a>(case: &'a Case, cause: &str) -> Option<&'a Finding> {
    case.findings.iter().find(|finding| finding.cause == cause)
}

/// System calls were recorded to the end.
fn has_all_calls(run: &Run) -> bool {
    let calls = run.capabilities.iter().find(|one| one.part == RecorderPart::SystemCalls);
    calls.is_some_and(|calls| calls.on)
}

/// With what the recorder could name no function of.
fn first_calls_of_any(case: &Case) -> Vec<&Outlier> {
    case.run.outliers.iter().filter(|outlier| outlier.kind == OutlierKind::FirstCall).collect()
}

/// The first calls of sched_yield by the limiter.
fn first_calls(case: &Case) -> Vec<&Outlier> {
    let call = Some(ImportedCall::Plt(CALL.to_owned()));
    let is_it = |outlier: &&Outlier| {
        let stack = outlier.user_stack.and_then(|id| case.run.stacks.get(&id));
        outlier.kind == OutlierKind::FirstCall
            && stack.is_some_and(|s| s.frames.iter().any(|f| f.after == call))
    };
    case.run.outliers.iter().filter(is_it).collect()
}
