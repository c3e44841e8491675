//! lazy-binding: the first call of a function goes through the dynamic linker, whose pages, or
//! those of the libraries' tables, are not in memory.
//!
//! Each PLT slot (one for each imported function of a file) is bound once per process life, so there is one stall, on a path that is
//! rarely taken, and no second one to be caught.
//!
//! # Evidence
//!
//! A page fault in the dynamic linker whose user stack has a call through the PLT with just the
//! slot number that the PLT pushed: the first call of an imported function. Its sleeps, from the
//! first fault to the next system call or fault elsewhere, are claimed; where system calls are not recorded, to
//! its last fault or sleep there. Each such call has its call site, its function, and the slots of the library
//! that are still unbound.
//!
//! # Without whylag
//!
//!     LD_DEBUG=bindings PROGRAM 2>&1 | grep binding    # when each symbol is bound
//!     readelf -d FILE | grep -E 'BIND_NOW|FLAGS'       # NOW: bound at the start
//!     perf trace -F all --no-syscalls -p PID           # faults: _dl_fixup, do_lookup_x
//!
//! # Sources
//!
//! ld.so(8) (LD_BIND_NOW); ld(1) (-z now); elf/dl-runtime.c of glibc.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Accounts, Blocked, Frame, Outlier, OutlierKind, RecorderPart, Role, Syscall};

use crate::case::Case;
use crate::case::held_sends::Sends;
use crate::case::in_words::in_words;
use crate::case::lost::{Class, class};
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::network::rate_limit_burst;
use crate::patterns::rhythm;
use crate::text::{count, counted, duration};

pub const CAUSE: Cause = Cause {
    id: ids::LAZY_BINDING,
    title: "first calls of functions wait for the dynamic linker's pages",
    fix: "Bind all calls when the program starts: LD_BIND_NOW=1 in its environment, or link it and \
          its libraries with -Wl,-z,now. 'whylag doctor -p PID --plt' lists the calls that can \
          still do this once.",
    reproduce: "mysteries/bin/lazy-binding-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Faults]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Calls worth a line.
const CALLS_SHOWN: usize = 3;

/// Functions that do nothing but wait.
const WAITS: [&str; 3] = ["sched_yield", "nanosleep", "clock_nanosleep"];

/// A first call that was seen.
struct First<'a> {
    outlier: &'a Outlier,
    caller: &'a Frame,
    called: &'a str,
    lost: Accounts,
}

fn examine(case: &Case) -> Verdict {
    let mut calls: Vec<First> = case.run.outliers.iter().filter_map(|o| first(case, o)).collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.lost.total()));
    let Some(worst) = calls.first().filter(|worst| worst.lost.total() > 0) else {
        return Err(Absent(
            "no first call of a lazily bound function waited in the dynamic linker".to_owned(),
        ));
    };
    let mut lost = Accounts::new();
    calls.iter().for_each(|call| lost.merge(&call.lost));
    let title = format!(
        "{} (tid {}) stalled {} in the first call of {}",
        worst.outlier.comm,
        worst.outlier.tid,
        duration(worst.outlier.duration_ns),
        worst.called
    );
    let mut claim = Claim::new(title, lost, calls.len() as u64);
    claim.longest_ns = worst.lost.total();

    let faults = worst.outlier.first_call;
    let (minor, major) = faults.map_or((0, 0), |f| (f.minor_faults, f.major_faults));
    claim.mechanism(format!(
        "the call was bound when it was first made: the dynamic linker looked the symbol up, with \
         {} that read the disk and {} that did not; {} of {} were waiting",
        counted(major, "page fault"),
        counted(minor, "page fault"),
        duration(worst.lost.total()),
        duration(worst.outlier.duration_ns)
    ));
    claim.trigger(format!(
        "{} called {} for the first time, {} after a full second of the wall clock",
        worst.caller.place(),
        worst.called,
        duration(phase_ns(case, worst.outlier.start_ns))
    ));
    if let Some(text) = limit_of_rate(case, worst) {
        claim.caused_by(Role::Trigger, ids::RATE_LIMIT_BURST, text);
    }
    evidence(case, &calls, worst, &mut claim);
    claim.rule_out(
        ids::FILE_MAJOR_FAULT,
        "the faulting instructions are the dynamic linker's, not the program's, and the same call \
         did not fault there again"
            .to_owned(),
    );
    if most_repeated(case, &calls) > 1 {
        claim.doubt(0.7, "one call was seen to be bound twice: its library was loaded again?");
    }
    Ok(claim)
}

fn evidence(case: &Case, calls: &[First], worst: &First, claim: &mut Claim) {
    for call in calls.iter().take(CALLS_SHOWN) {
        claim.saw(
            format!("{}: {}", call.caller.place(), in_words(case, call.outlier)),
            "page faults in the dynamic linker, and the slot number that the PLT pushed",
        );
    }
    claim.saw_if(still_unbound(worst), "the library's slots, in the memory of the process");
    let repeated = most_repeated(case, calls);
    let lives: BTreeSet<_> = calls.iter().map(|call| life(case, call)).collect();
    claim.saw(
        format!(
            "{} in {}, each {} in the life of its process",
            counted(calls.len() as u64, "first call"),
            match lives.len() {
                1 => "one process".to_owned(),
                n => format!("{n} lives of processes (from one exec to the next)"),
            },
            match repeated {
                1 => "once".to_owned(),
                n => format!("at most {n} times"),
            }
        ),
        "call site and symbol of each",
    );
    let times: Vec<u64> = calls.iter().map(|call| call.outlier.start_ns).collect();
    claim.saw_if(rhythm::of_second(case.run, &times), "Rayleigh's test of when they began");
}

fn first<'a>(case: &Case<'a>, outlier: &'a Outlier) -> Option<First<'a>> {
    if outlier.kind != OutlierKind::FirstCall {
        return None;
    }
    let stack = case.run.stacks.get(&outlier.user_stack?)?;
    let caller = stack.frames.iter().find(|frame| frame.after.is_some())?;
    let called = caller.after.as_ref()?.symbol();
    let lost = outlier.breakdown.iter().filter(|(account, _)| is_of_binding(*account));
    Some(First { outlier, caller, called, lost: lost.collect() })
}

/// Sleeps for what the linker touches: pages and the locks on the way to them. Whoever else has the
/// CPU meanwhile, or stops the thread, is not the linker's doing.
fn is_of_binding(account: Account) -> bool {
    let sleeps = matches!(account, Account::Blocked(kind) if kind != Blocked::Stopped);
    sleeps && class(account) == Class::Lost
}

/// The limit of a sending rate, if that is what the first call was made for.
fn limit_of_rate(case: &Case, worst: &First) -> Option<String> {
    let (run, tgid) = (case.whole(), worst.outlier.tgid);
    let call = WAITS.contains(&worst.called).then(|| Syscall::named(worst.called))??;
    let sends = Sends::of(run, tgid, call);
    sends.reach_a_limit().then(|| rate_limit_burst::reached(run, tgid, &sends))
}

/// How far into a second of the wall clock a moment lies.
fn phase_ns(case: &Case, at_ns: u64) -> u64 {
    let header = &case.whole().header;
    let into = i128::from(at_ns) - i128::from(header.started_ns);
    let phase = (i128::from(header.started_unix_ns) + into).rem_euclid(1_000_000_000);
    u64::try_from(phase).unwrap_or(0)
}

/// What else the caller's library has not called yet.
fn still_unbound(worst: &First) -> Option<String> {
    let left = worst.outlier.first_call?.left?;
    Some(format!(
        "{} of {} PLT slots of {} were still unbound and can each do this once",
        count(left.unbound),
        count(left.slots),
        worst.caller.module_name()
    ))
}

/// A process from one exec to the next.
fn life(case: &Case, call: &First) -> (u32, usize) {
    (call.outlier.tgid, case.whole().execs(call.outlier.tgid, call.outlier.start_ns))
}

/// How often the same slot was bound in the life of a process, at most.
fn most_repeated(case: &Case, calls: &[First]) -> u64 {
    let mut times = BTreeMap::new();
    for call in calls {
        *times.entry((life(case, call), &call.caller.module, call.called)).or_insert(0) += 1;
    }
    times.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use model::{FirstCall, Metric, SlotsLeft};

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval};

    const MAJOR: Account = Account::Blocked(Blocked::FaultMajor);
    const MS: u64 = 1_000_000;

    fn first_call(ms: u64) -> Outlier {
        let parts = [(MAJOR, ms * MS - MS), (USER, MS)];
        Outlier {
            kind: OutlierKind::FirstCall,
            breakdown: parts.into_iter().collect(),
            first_call: Some(FirstCall {
                minor_faults: 7,
                major_faults: 3,
                left: Some(SlotsLeft { unbound: 41, slots: 212 }),
            }),
            ..interval(10, MAJOR, SECOND + 14 * MS, ms * MS, None)
        }
    }

    fn run(ms: u64) -> RunBuilder {
        let threads = RunBuilder::new().thread(10, 10, &[(USER, 3 * SECOND), (MAJOR, ms * MS)]);
        threads.first_call(first_call(ms), "/opt/librate.so", Some("sched_yield@plt"))
    }

    #[test]
    fn one_stall_is_enough_and_its_caller_is_named() {
        let run = run(12).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.total(), 11 * MS, "the work of the linker is not lost");
        assert!(claim.title.contains("first call of sched_yield"), "{}", claim.title);
        let trigger = &claim.chain[1].text;
        assert!(trigger.contains("librate.so:rate_timer+0x9e3"), "{trigger}");
        assert!(trigger.contains("14.0 ms after a full second"), "{trigger}");
        let explained = crate::explain(&run);
        assert_eq!(explained.findings[0].cause, "lazy-binding");
        assert!(claim.doubts.is_empty());
        let left = "41 of 212 PLT slots of librate.so were still unbound";
        assert!(claim.evidence.iter().any(|seen| seen.text.contains(left)), "{claim:?}");
    }

    #[test]
    fn a_limit_of_the_sending_rate_is_told_from_other_waits() {
        let named = |name| Syscall::named(name).unwrap();
        let held = || run(12).values(Metric::HeldSend(named("sched_yield")), 5, &[MS; 40]);
        let alone = held().build();
        assert_eq!(examine(&Case::new(&alone)).unwrap().chain.len(), 2, "it sends nothing else");
        let sender = held().values(Metric::Syscall(named("sendto")), 5, &[2_000; 9_000]).build();
        let claim = examine(&Case::new(&sender)).unwrap();
        let last = claim.chain.last().unwrap();
        assert_eq!(last.cause.as_deref(), Some("rate-limit-burst"));
        assert!(last.text.contains("40 of 9,000 sends"), "{last:?}");
    }

    #[test]
    fn what_others_take_meanwhile_is_theirs() {
        let stopped = Account::Blocked(Blocked::Stopped);
        let theirs = [Account::RunnablePreempted, Account::Stolen, Account::SoftIrq, stopped];
        let mut call = first_call(12);
        theirs.iter().for_each(|account| call.breakdown.add(*account, 5 * MS));
        let threads = RunBuilder::new().thread(10, 10, &[(USER, 3 * SECOND), (MAJOR, 12 * MS)]);
        let run = threads.first_call(call, "/opt/librate.so", Some("sched_yield@plt")).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.total(), 11 * MS);
    }

    #[test]
    fn a_short_one_is_no_finding() {
        let run = run(1).build();
        assert!(examine(&Case::new(&run)).is_err(), "nothing was waited for");
    }

    #[test]
    fn what_else_the_linker_does_is_no_first_call() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (MAJOR, SECOND)]);
        let run = run.first_call(first_call(12), "/opt/librate.so", None).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no first call"));
    }
}
