mod any_run;

use super::rank::cap;
use super::*;
use crate::case::mmap_holders::{READ, WRITE};
use crate::cause::{Cause, Claim};
use crate::testing::{FUTEX, RunBuilder, SECOND, USER, drops, hold, interval, runner, wait};
use model::{Account, Blocked, RecorderPart, Role, RunnerSum, WaitSum};

const POLL: Account = Account::Blocked(Blocked::Poll);
const PREEMPTED: Account = Account::RunnablePreempted;

fn causes(explanation: &Explanation) -> Vec<&str> {
    explanation.findings.iter().map(|finding| finding.cause.as_str()).collect()
}

/// The database of story 2: most time on its own mmap_lock, some on the run queue.
fn story_two() -> RunBuilder {
    let mut builder = RunBuilder::new()
        .cpus(2, 2 * SECOND, 2 * SECOND)
        .wait(wait(10, WRITE, 1, 4000, 32 * SECOND))
        .hold(hold(10, 10, true, 30 * SECOND))
        .runner(runner(10, 10, 5000, 16 * SECOND));
    for tid in 10..26 {
        let accounts = [(USER, SECOND), (WRITE, 2 * SECOND), (PREEMPTED, SECOND)];
        builder = builder.thread(tid, 10, &accounts);
    }
    builder
}

#[test]
fn the_largest_share_comes_first_and_shares_add_up() {
    let explanation = explain(&story_two().build());
    assert_eq!(causes(&explanation), ["mmap-lock", "cpu-runqueue"]);
    assert_eq!(explanation.wall_ns, 64 * SECOND);
    assert_eq!(explanation.lost_ns, 48 * SECOND);
    assert_eq!(explanation.findings[0].lost_ns, 32 * SECOND);
    let shares: f64 = explanation.findings.iter().map(|f| f.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert!(explanation.unexplained.is_empty());
    assert_eq!(explanation.findings[0].confidence, 1.0);
}

/// So many processes that each use a CPU for as long and read a slow clock for as long, and a process of
/// so many threads that are idle for 4 s.
fn readers_of_a_slow_clock(readers: u32, user_ns: u64, read_ns: u64, idle: u32) -> Explanation {
    let clock = Account::Syscall(model::Syscall::named("clock_gettime").unwrap());
    let mut builder = RunBuilder::new();
    for reader in 10..10 + readers {
        builder = builder.thread(reader, reader, &[(USER, user_ns), (clock, read_ns)]);
    }
    for tid in 1_000..1_000 + idle {
        builder = builder.thread(tid, 1_000, &[(POLL, 4 * SECOND)]);
    }
    let mut run = builder.build();
    run.facts.push(model::Fact {
        name: "clocksource.read_ns".into(),
        value: "1000".into(),
        source: "test".into(),
    });
    explain(&run)
}

#[test]
fn dear_work_is_named_however_many_threads_are_idle() {
    let of_one = |read_ns| readers_of_a_slow_clock(1, 2 * SECOND, read_ns, 200);
    assert_eq!(causes(&of_one(SECOND)), ["slow-clocksource"]);
    // A tenth of a CPU: of no moment, and less than a quarter of the work.
    assert!(causes(&of_one(SECOND / 10 * 4)).is_empty());
}

#[test]
fn dear_work_of_many_short_processes_leads_however_many_threads_are_idle() {
    let explanation = readers_of_a_slow_clock(100, SECOND / 50, SECOND / 100, 2_000);
    assert_eq!(causes(&explanation), ["slow-clocksource"]);
    let finding = &explanation.findings[0];
    assert!(finding.wall_share < 0.01, "{}", finding.wall_share);
    assert!(!finding.minor);
}

#[test]
fn a_finding_is_complete() {
    let explanation = explain(&story_two().build());
    let first = &explanation.findings[0];
    let roles: Vec<_> = first.chain.iter().map(|link| link.role).collect();
    assert_eq!(roles, [Role::Symptom, Role::Mechanism, Role::Trigger]);
    let symptom = &first.chain[0].text;
    assert_eq!(
        symptom,
        "16 threads lost 32.0 s: 50 % of the wall time of all threads; \
         the 2 CPUs of the host were idle 50 % of the time"
    );
    assert!(!first.evidence.is_empty());
    let excluded: Vec<_> = first.ruled_out.iter().map(|r| r.cause.as_str()).collect();
    assert_eq!(excluded, ["cpu-runqueue", "mm-reader", "malloc-trim", "tlb-shootdown"]);
    let before = r"--before './server --name '\''a b'\'''";
    assert_eq!(first.verify, format!("whylag prove --cause mmap-lock {before} --after FIXED"));
    assert!(first.reproduce.contains("mmap-lock-faulty"));
}

#[test]
fn two_kinds_of_holders_share_the_waiting_without_counting_it_twice() {
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (WRITE, SECOND), (READ, SECOND)])
        .hold(hold(10, 10, true, SECOND / 4))
        .hold(hold(10, 99, false, SECOND / 2))
        .build();
    let explanation = explain(&run);
    assert_eq!(causes(&explanation), ["mm-reader", "mmap-lock"]);
    let claimed: u64 = explanation.findings.iter().map(|f| f.lost_ns).sum();
    // Of the waiting to read no holder is known: it stays unexplained.
    assert!((SECOND - 2..=SECOND).contains(&claimed), "{claimed}");
    assert_eq!(explanation.unexplained[0], (READ, SECOND));
    // Neither excludes the other: both are there.
    let excluded = explanation.findings.iter().flat_map(|f| &f.ruled_out);
    assert!(excluded.into_iter().all(|r| r.cause != "mmap-lock" && r.cause != "mm-reader"));
}

#[test]
fn a_look_alike_that_stays_possible_is_named_with_what_tells_it_apart() {
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (WRITE, SECOND)])
        .hold(hold(10, 10, true, SECOND / 2))
        .hold(hold(10, 99, false, SECOND / 2))
        .build();
    for finding in explain(&run).findings {
        let other = if finding.cause == "mmap-lock" { "mm-reader" } else { "mmap-lock" };
        let open: Vec<_> = finding.not_ruled_out.iter().filter(|o| o.cause == other).collect();
        assert_eq!(open.len(), 1, "{finding:?}");
        assert!(open[0].because.contains("explains 500 ms"), "{}", open[0].because);
        assert!(open[0].tell_apart.contains("/proc/PID/smaps"), "{}", open[0].tell_apart);
    }
}

#[test]
fn a_look_alike_whose_evidence_was_not_recorded_is_not_ruled_out() {
    let whole = explain(&story_two().build()).findings.remove(0);
    assert!(whole.not_ruled_out.is_empty());
    let blind = explain(&story_two().off(RecorderPart::MmapLock).build()).findings.remove(0);
    assert!(blind.ruled_out.iter().all(|other| other.cause != "mm-reader"));
    assert_eq!(blind.not_ruled_out[0].cause, "mm-reader");
    assert!(blind.not_ruled_out[0].because.contains("'mmap_lock holders' was off"));
}

#[test]
fn what_no_cause_claims_is_unexplained_by_account() {
    let rwsem = Account::Blocked(Blocked::Rwsem);
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (rwsem, 2 * SECOND), (Account::HardIrq, SECOND)])
        .build();
    let explanation = explain(&run);
    assert!(explanation.findings.is_empty());
    assert_eq!(explanation.unexplained, [(rwsem, 2 * SECOND), (Account::HardIrq, SECOND)]);
}

#[test]
fn a_healthy_program_has_no_finding() {
    let busy = RunBuilder::new()
        .thread(10, 10, &[(USER, 39 * SECOND), (PREEMPTED, SECOND)])
        .runner(runner(10, 77, 900, SECOND))
        .build();
    assert!(explain(&busy).findings.is_empty());
    // 60,000 wake-ups of 30 us on a busy neighbour's CPU, 30 us of work each.
    let idle = RunBuilder::new()
        .length(60 * SECOND)
        .thread(10, 10, &[(USER, 2 * SECOND), (PREEMPTED, 2 * SECOND), (POLL, 56 * SECOND)])
        .runner(runner(10, 77, 60_000, 2 * SECOND))
        .build();
    let explanation = explain(&idle);
    assert!(explanation.findings.is_empty(), "{:?}", causes(&explanation));
    assert_eq!(explanation.idle_ns, 56 * SECOND);
    assert_eq!(explanation.unexplained, [(PREEMPTED, 2 * SECOND)]);
}

/// 100 threads of 1 s wait 4 ms each for their mmap_lock, one after the other so far apart.
fn threads_that_wait_once(apart_ns: u64) -> Explanation {
    let ms = SECOND / 1000;
    let mut builder = RunBuilder::new().length(SECOND);
    builder = builder.wait(wait(10, WRITE, 1, 100, 400 * ms)).hold(hold(10, 10, true, 400 * ms));
    for tid in 0..100 {
        let waits = [(USER, 2 * ms), (WRITE, 4 * ms), (POLL, 994 * ms)];
        let start_ns = u64::from(tid) * apart_ns;
        builder = builder.thread(10 + tid, 10, &waits).kept(interval(
            10 + tid,
            WRITE,
            start_ns,
            4 * ms,
            None,
        ));
    }
    explain(&builder.build())
}

#[test]
fn threads_that_all_wait_in_one_moment_as_when_they_end_have_no_finding() {
    let explanation = threads_that_wait_once(10_000);
    assert!(explanation.findings.is_empty(), "{:?}", causes(&explanation));
    let explanation = threads_that_wait_once(9_000_000);
    assert_eq!(causes(&explanation), ["mmap-lock"]);
}

#[test]
fn a_few_slow_threads_among_many_idle_ones_are_found() {
    let mut builder = RunBuilder::new().wait(WaitSum {
        lock_like: 1000,
        by_waiter: 990,
        ..wait(10, FUTEX, 0xbeef, 1000, 3 * SECOND)
    });
    builder = builder.thread(10, 10, &[(USER, SECOND), (FUTEX, 3 * SECOND)]);
    for tid in 11..131 {
        builder = builder.thread(tid, 10, &[(POLL, 4 * SECOND)]);
    }
    let explanation = explain(&builder.build());
    assert_eq!(causes(&explanation), ["futex-convoy"]);
    assert!(explanation.findings[0].lost_ns * 20 < explanation.wall_ns);
}

#[test]
fn confidence_falls_with_losses_sampling_missing_parts_and_few_waits() {
    let confidence = |builder: RunBuilder| {
        let first = explain(&builder.build()).findings.remove(0);
        assert_eq!(first.confidence < 1.0, !first.doubts.is_empty());
        first.confidence
    };
    let whole = confidence(story_two());
    let few = confidence(story_two().lost("event_ring", 10, 100_000));
    let many = confidence(story_two().lost("event_ring", 50_000, 100_000));
    assert_eq!(confidence(story_two().lost("event_ring", 1, 100_000)), whole);
    assert!(whole > few && few > many && many > 0.0, "{whole} {few} {many}");
    assert!(confidence(story_two().sampled()) < whole);
    assert!(confidence(story_two().off(RecorderPart::MmapLock)) < whole);
    assert_eq!(confidence(story_two().off(RecorderPart::Interrupts)), whole);

    let pipe = Account::Blocked(Blocked::PipeWrite);
    let stuck = |count| {
        let waits = WaitSum { waker_tgid: 5, ..wait(10, pipe, 7, count, 3 * SECOND) };
        confidence(RunBuilder::new().thread(10, 10, &[(pipe, 3 * SECOND)]).wait(waits))
    };
    assert!(stuck(3) < stuck(20) && stuck(20) < stuck(300));
}

#[test]
fn time_in_no_account_is_unaccounted_and_a_doubt() {
    let mut run = story_two().build();
    for thread in &mut run.threads {
        thread.last_ns += SECOND;
    }
    let explanation = explain(&run);
    assert_eq!(explanation.unaccounted_ns, 16 * SECOND);
    assert_eq!(explanation.wall_ns, 80 * SECOND);
    assert!(explanation.findings[0].doubts[0].contains("20 % of the wall time is unaccounted"));
}

#[test]
fn an_empty_run_is_explained_as_nothing() {
    let explanation = explain(&RunBuilder::new().build());
    assert!(explanation.findings.is_empty() && explanation.accounts.is_empty());
    assert_eq!((explanation.wall_ns, explanation.lost_ns), (0, 0));
}

#[test]
fn overlapping_claims_are_cut_the_smaller_one_first() {
    fn claims(cause: &'static Cause, ns: u64) -> Judged {
        let claim = Claim::new(String::new(), [(PREEMPTED, ns)].into_iter().collect(), 1);
        Judged { cause, verdict: Ok(claim), claimed_ns: ns, shortfall: None }
    }
    let lost = [(PREEMPTED, 10)].into_iter().collect();
    let mut judged = [claims(ALL[0], 4), claims(ALL[1], 8)];
    cap(&mut judged, &lost, &Accounts::new(), |_| None);
    let left = judged.map(|one| one.verdict.unwrap().lost.total());
    assert_eq!(left, [2, 8]);
}

#[test]
fn a_claim_that_is_not_named_keeps_no_time_from_others() {
    // A real-time thread ran for 8 ms of 5 s: less than the floor of 10 ms.
    let urgent = RunnerSum { realtime: 50, ..runner(10, 99, 40, 8_000_000) };
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, 10 * SECOND), (PREEMPTED, 5 * SECOND)])
        .runner(urgent)
        .runner(runner(10, 77, 9_000, 5 * SECOND - 8_000_000))
        .build();
    let standing = crate::why_not(&run, "rt-starvation").unwrap().standing;
    assert!(matches!(standing, model::Standing::BelowFloor { .. }), "{standing:?}");
    let explanation = explain(&run);
    assert_eq!(causes(&explanation), ["cpu-runqueue"]);
    assert_eq!(explanation.findings[0].lost_ns, 5 * SECOND);
    assert!(explanation.unexplained.is_empty(), "{:?}", explanation.unexplained);
}

#[test]
fn a_few_dropped_packets_do_not_come_before_what_took_the_time() {
    let disk = Account::Blocked(Blocked::Disk);
    let first = |count| {
        let dropped = model::Drops { count, ..drops("SOCKET_RCVBUFF", 14_000_000, 50_000_000) };
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND), (disk, SECOND / 10)])
            .runner(runner(10, 77, 900, SECOND))
            .interval(10, disk, 14_000_000, 60_000_000, None)
            .dropped(dropped)
            .build();
        let found = explain(&run);
        assert_eq!(causes(&found).len(), 2, "{:?}", causes(&found));
        found.findings[0].cause.clone()
    };
    assert_eq!((first(3).as_str(), first(300).as_str()), ("cpu-runqueue", "udp-rcvbuf-stall"));
}

/// A claim that is large enough for a finding.
fn large_claim() -> Claim {
    Claim::new("seen".into(), [(FUTEX, 4 * SECOND)].into_iter().collect(), 100)
}

#[test]
fn each_pair_of_look_alikes_is_printed_from_the_sides_that_it_is_for() {
    let run = RunBuilder::new().thread(10, 10, &[(FUTEX, 8 * SECOND)]).build();
    let case = Case::new(&run);
    let known = |id| ALL.iter().copied().find(|cause| cause.id == id).unwrap();
    for cause in ALL {
        for pair in cause.look_alikes {
            let other = known(pair.cause);
            let back = pair.mutual.then_some((other, *cause));
            for (found, open) in [(*cause, other)].into_iter().chain(back) {
                let judged = [Judged {
                    cause: open,
                    verdict: Ok(large_claim()),
                    claimed_ns: 4 * SECOND,
                    shortfall: None,
                }];
                let finding = finding(&case, found, &large_claim(), 8 * SECOND, &judged);
                let printed = &finding.not_ruled_out[..];
                assert_eq!(printed.len(), 1, "{} or {}", found.id, open.id);
                assert_eq!(printed[0].cause, open.id.as_str());
                assert_eq!(printed[0].tell_apart, pair.tell_apart);
            }
        }
    }
}
