use model::{
    Account, Blocked, Context, Crowd, Event, EventDetail, EventKind, Holder, Outlier, OutlierKind,
    Run, Runner, Syscall, SyscallCall, ThreadAccounts, WaitSum, Waker,
};

use crate::case::mmap_holders::WRITE;
use crate::part::question::Question;
use crate::testing::{FUTEX, RunBuilder, SECOND, USER, hold, interval, runner, wait};
use crate::{PartialRun, explain_part};

const MS: u64 = 1_000_000;
const QUEUED: Account = Account::RunnablePreempted;
const WAKING: Account = Account::RunnableWakeup;
const POLL: Account = Account::Blocked(Blocked::Poll);
const MMAP: Account = Account::Syscall(Syscall(9));

/// A second of thread 10 that is otherwise healthy; in it one mmap of 8 ms, 6 of them asleep for
/// mmap_lock while thread 11 held it, 1 in the run queue behind it.
fn one_slow_call() -> RunBuilder {
    let call = SyscallCall { call: Syscall(9), args: [0; 6], result: Some(0) };
    let sleep = Outlier {
        blocked: Some(Blocked::MmapLockWrite),
        breakdown: [(WRITE, 6 * MS), (WAKING, MS)].into_iter().collect(),
        syscall: Some(SyscallCall { result: None, ..call }),
        holder: Some(Holder {
            tid: 11,
            tgid: 10,
            comm: "thread-11".into(),
            write: true,
            call: Some(Syscall(9)),
            overlap_ns: 5 * MS,
        }),
        ran_instead: vec![Runner {
            tid: 11,
            tgid: 10,
            comm: "thread-11".into(),
            realtime: 0,
            ns: MS,
        }],
        ..interval(10, WRITE, 500 * MS, 7 * MS, Some(11))
    };
    let slow = Outlier {
        kind: OutlierKind::Syscall,
        start_ns: 500 * MS - MS / 2,
        duration_ns: 8 * MS,
        breakdown: [(WRITE, 6 * MS), (WAKING, MS), (MMAP, MS)].into_iter().collect(),
        syscall: Some(call),
        ..sleep.clone()
    };
    RunBuilder::new()
        .length(SECOND)
        .thread(10, 10, &[(USER, 20 * MS), (POLL, 972 * MS), (WRITE, 6 * MS), (WAKING, 2 * MS)])
        .thread(11, 10, &[(USER, SECOND)])
        .kept(slow)
        .kept(sleep)
}

fn partial<'a>(run: &'a Run, question: &Question) -> PartialRun<'a> {
    PartialRun::new(run, question).unwrap()
}

#[test]
fn one_slow_call_has_its_cause_though_the_run_has_none() {
    let run = one_slow_call().build();
    assert!(crate::explain(&run).findings.is_empty());
    let answer = explain_part(&partial(&run, &Question::Outlier(1)));
    assert_eq!(answer.wall_ns, 8 * MS, "the sleep inside it counts once");
    assert_eq!((answer.lost_ns, answer.unaccounted_ns), (7 * MS, 0));
    let found: Vec<_> = answer.findings.iter().map(|f| (f.cause.as_str(), f.lost_ns)).collect();
    assert_eq!(found, [("mmap-lock", 6 * MS), ("cpu-runqueue", MS)]);
    let scope = answer.scope.unwrap();
    assert_eq!(
        (scope.intervals, scope.threads, scope.what.as_str()),
        (2, 1, "outlier 1 (thread-10, tid 10)")
    );
}

#[test]
fn a_long_wait_for_work_has_no_cause_because_its_thread_was_woken_a_little_late() {
    let sleep = Outlier {
        breakdown: [(POLL, 2 * SECOND), (WAKING, 3 * MS)].into_iter().collect(),
        ran_instead: vec![Runner {
            tid: 77,
            tgid: 77,
            comm: "hog".into(),
            realtime: 0,
            ns: 3 * MS,
        }],
        ..interval(10, POLL, 0, 2 * SECOND + 3 * MS, None)
    };
    let run = RunBuilder::new().thread(10, 10, &[(POLL, 3 * SECOND)]).kept(sleep).build();
    let answer = explain_part(&partial(&run, &Question::Outlier(1)));
    assert!(answer.findings.is_empty() && answer.lost_ns == 3 * MS);
}

#[test]
fn the_same_hold_told_by_a_call_and_by_its_sleep_counts_once() {
    let run = one_slow_call().build();
    let part = partial(&run, &Question::Outlier(1));
    assert_eq!(part.run.sums.holds.len(), 1);
    assert_eq!((part.run.sums.holds[0].count, part.run.sums.holds[0].ns), (1, 5 * MS));
    assert_eq!((part.run.sums.runners.len(), part.run.sums.runners[0].ns), (1, MS));
    assert_eq!(part.run.sums.waits[0].ns, 6 * MS);
}

#[test]
fn a_holder_that_was_not_seen_is_who_ended_the_wait_and_the_answer_says_so() {
    let builder = || {
        RunBuilder::new().thread(10, 10, &[(WRITE, SECOND)]).thread(11, 10, &[]).interval(
            10,
            WRITE,
            0,
            5 * MS,
            Some(11),
        )
    };
    let run = builder().hold(hold(10, 10, true, SECOND)).build();
    let answer = explain_part(&partial(&run, &Question::Outlier(1)));
    assert_eq!(answer.findings[0].cause, "mmap-lock");
    let basis = answer.scope.unwrap().basis;
    assert!(basis.contains("not seen in 1 wait"), "{basis}");
    let run = builder().build();
    assert!(explain_part(&partial(&run, &Question::Outlier(1))).findings.is_empty());
}

#[test]
fn a_window_cuts_intervals_at_its_edges_and_between_them_only_time_on_a_cpu_is_estimated() {
    let run = one_slow_call().build();
    // The last 3 ms of the sleep, its wait for a CPU, and half a millisecond of mmap.
    let part = partial(&run, &Question::Window(503 * MS, 513 * MS));
    let of = |tid| part.run.threads.iter().find(|t| t.tid == tid).unwrap();
    assert_eq!(of(10).accounts.get(WRITE), 3 * MS);
    assert_eq!(of(10).accounts.get(WAKING), MS);
    assert_eq!(of(10).accounts.get(MMAP), MS / 2);
    assert_eq!(of(10).accounts.total(), 10 * MS);
    // All of its life was on a CPU; of the other, 20 of the 992 ms that no interval has.
    assert_eq!(of(11).accounts.get(USER), 10 * MS);
    assert_eq!(of(10).accounts.get(USER), 11 * MS / 2 * 20 / 993);
    assert_eq!(part.scope.estimated_ns, 10 * MS + of(10).accounts.get(USER));
    assert_eq!(part.run.length_ns(), 10 * MS);
    let longest = &part.run.outliers[0];
    assert_eq!((longest.start_ns, longest.duration_ns), (503 * MS, 9 * MS / 2));
    assert_eq!(longest.breakdown.total(), longest.duration_ns);

    let answer = explain_part(&part);
    assert_eq!(answer.findings[0].cause, "mmap-lock");
    assert!(answer.findings[0].doubts.iter().any(|doubt| doubt.contains("kept whole")));
    let elsewhere = explain_part(&partial(&run, &Question::Window(0, 400 * MS)));
    assert!(elsewhere.findings.is_empty());
    assert_eq!((elsewhere.lost_ns, elsewhere.wall_ns), (0, 800 * MS));
}

#[test]
fn a_part_has_causes_of_time_on_a_cpu_with_a_doubt() {
    let touching = |samples| {
        let frames =
            ["do_anonymous_page", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];
        one_slow_call().sampled_path(10, USER, &frames, samples)
    };
    let window = Question::Window(0, 400 * MS);
    let causes = |run: &Run| -> Vec<_> {
        let answer = explain_part(&partial(run, &window));
        answer.findings.into_iter().map(|f| (f.cause, f.lost_ns, f.doubts)).collect()
    };
    let found = causes(&touching(900).build());
    assert_eq!(found[0].0, "first-touch");
    assert!(found[0].1.abs_diff(408 * MS) < MS, "{found:?}");
    assert!(found[0].2.iter().any(|doubt| doubt.contains("not of this part")), "{found:?}");

    // Where intervals were left out it is not known what was between those that are there.
    let mut run = touching(900).build();
    run.outlier_count += 1;
    assert!(causes(&run).is_empty());
}

#[test]
fn a_window_may_end_beyond_the_run_but_not_begin_there() {
    let run = one_slow_call().build();
    let part = partial(&run, &Question::Window(900 * MS, 60 * SECOND));
    assert_eq!(part.scope.to_ns, SECOND);
    let refused = |question: Question| PartialRun::new(&run, &question).err().unwrap().to_string();
    assert_eq!(
        refused(Question::Window(2 * SECOND, 3 * SECOND)),
        "the window 2.00 s..3.00 s is outside run 1, which is 1.00 s long"
    );
    let reversed = refused(Question::Window(500 * MS, 200 * MS));
    assert!(reversed.starts_with("the window 500 ms..200 ms does not end after"), "{reversed}");
    assert!(reversed.ends_with("1.00 s long"), "{reversed}");
    assert!(refused(Question::Window(5, 5)).contains("5 ns..5 ns"));
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let run = one_slow_call().build();
    let refused =
        |run: &Run, question: Question| PartialRun::new(run, &question).err().unwrap().to_string();
    let text = refused(&run, Question::Outlier(3));
    assert_eq!(text, "run 1 has no outlier 3: it has 2, 1 is the longest");
    let text = refused(&run, Question::Thread(99));
    assert_eq!(text, "run 1 has no thread 99: 'whylag show 1' lists its 2 threads");
    let mut many = run.clone();
    many.outlier_count = 5_000;
    assert!(
        refused(&many, Question::Outlier(3)).contains("of its 5,000 the longest 2 are numbered")
    );
    let empty = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
    assert!(refused(&empty, Question::Outlier(1)).contains("took 10.0 us or longer"));
    let sampled = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).sampled().build();
    assert!(refused(&sampled, Question::Window(0, SECOND)).contains("sampled from /proc"));
    assert!(PartialRun::new(&sampled, &Question::Thread(10)).is_ok());
}

#[test]
fn a_thread_keeps_its_own_accounts_and_only_whom_it_waited_for_is_rebuilt() {
    let run = one_slow_call().build();
    let part = partial(&run, &Question::Thread(10));
    assert_eq!(part.run.threads, [run.threads[0].clone()]);
    assert!(part.scope.exact);
    let answer = explain_part(&part);
    assert_eq!((answer.wall_ns, answer.lost_ns), (SECOND, 8 * MS));
    assert_eq!(answer.findings[0].cause, "mmap-lock");
    assert_eq!(answer.findings[0].lost_ns, 6 * MS);
}

#[test]
fn the_only_thread_of_a_process_has_the_sums_of_its_process() {
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (QUEUED, SECOND)])
        .thread(20, 20, &[(USER, SECOND)])
        .runner(runner(10, 77, 900, SECOND))
        .runner(runner(20, 66, 900, SECOND))
        .build();
    let part = partial(&run, &Question::Thread(10));
    assert_eq!(part.run.sums.runners.len(), 1);
    let answer = explain_part(&part);
    assert_eq!(answer.findings[0].cause, "cpu-runqueue");
    assert!(answer.findings[0].title.contains("runner-77"));
}

#[test]
fn a_futex_word_is_a_lock_by_all_waits_of_the_run_on_it() {
    let at = |lock_like| {
        let sum = WaitSum { lock_like, ..wait(10, FUTEX, 0x10, 100, SECOND) };
        let run = RunBuilder::new()
            .thread(10, 10, &[(FUTEX, SECOND)])
            .thread(11, 10, &[(USER, SECOND)])
            .wait(sum)
            .interval(10, FUTEX, 0, 5 * MS, Some(11))
            .build();
        explain_part(&partial(&run, &Question::Outlier(1))).lost_ns
    };
    assert_eq!((at(100), at(0)), (5 * MS, 0));
}

#[test]
fn chains_lead_to_threads_outside_the_part() {
    let run = RunBuilder::new()
        .thread(10, 10, &[(FUTEX, SECOND)])
        .thread(11, 10, &[(QUEUED, SECOND)])
        .wait(WaitSum { lock_like: 1, ..wait(10, FUTEX, 0x10, 1, SECOND) })
        .interval(10, FUTEX, 100, 10 * MS, Some(11))
        .interval(11, QUEUED, 200, 9 * MS, None)
        .build();
    let part = partial(&run, &Question::Outlier(1));
    assert_eq!(part.run.outliers.len(), 1, "the other thread's is no evidence of this one");
    let case = crate::case::Case::of_part(&part);
    let behind = case.behind_holders(|_| true, |_, account| account == QUEUED);
    assert_eq!(behind.accounts.get(FUTEX), 9 * MS);
}

#[test]
fn the_holder_of_a_lock_is_explained_by_its_own_intervals_meanwhile() {
    let hold = Outlier {
        kind: OutlierKind::LockHold,
        breakdown: [(Account::Unaccounted, 20 * MS)].into_iter().collect(),
        blocked: None,
        ..interval(10, WRITE, 100 * MS, 20 * MS, None)
    };
    let run = RunBuilder::new()
        .thread(10, 10, &[(QUEUED, SECOND)])
        .kept(hold)
        .interval(10, QUEUED, 105 * MS, 10 * MS, None)
        .build();
    let answer = explain_part(&partial(&run, &Question::Outlier(1)));
    assert_eq!((answer.lost_ns, answer.unaccounted_ns), (10 * MS, 10 * MS));
}

#[test]
fn only_losses_near_the_part_lower_its_confidence() {
    let doubts = |at: u64| {
        let mut run = one_slow_call().length(60 * SECOND).build();
        run.losses.seen = vec![("ring".into(), at, 50)];
        run.cost.events = 60_000;
        let answer = explain_part(&partial(&run, &Question::Outlier(1)));
        answer.findings[0].doubts.iter().filter(|doubt| doubt.contains("50 events lost")).count()
    };
    assert_eq!((doubts(SECOND), doubts(30 * SECOND)), (1, 0));
}

/// Of a window it is a doubt.
#[test]
fn who_asks_about_one_interval_is_not_told_that_only_one_was_seen() {
    let doubts = |question| {
        let run = one_slow_call().build();
        let answer = explain_part(&partial(&run, &question));
        answer.findings[0].doubts.iter().filter(|doubt| doubt.contains("seen")).count()
    };
    assert_eq!(doubts(Question::Outlier(1)), 0);
    assert_eq!(doubts(Question::Window(490 * MS, 520 * MS)), 1);
}

#[test]
fn values_and_events_of_the_part_are_its_histograms() {
    let device = |time_ns| Event {
        time_ns,
        kind: EventKind::BlockIo,
        tid: 0,
        tgid: 0,
        value: 3 * MS,
        detail: EventDetail::Device("253:0".into()),
    };
    let run = one_slow_call().event(device(505 * MS)).event(device(900 * MS)).build();
    let part = partial(&run, &Question::Window(490 * MS, 520 * MS));
    let case = crate::case::Case::of_part(&part);
    assert_eq!(case.calls("mmap").0, 1);
    let disk = case.merged(|metric| matches!(metric, model::Metric::BlockIo(_))).unwrap();
    assert_eq!(disk.count(), 1);
}

#[test]
fn a_waker_in_an_interrupt_is_nobody() {
    let mut woken = interval(10, FUTEX, 0, 5 * MS, None);
    woken.waker =
        Some(Waker { tid: 0, tgid: 0, comm: "swapper".into(), context: Context::HardIrq });
    let run = RunBuilder::new()
        .thread(10, 10, &[(FUTEX, SECOND)])
        .thread(11, 10, &[])
        .kept(woken)
        .build();
    assert_eq!(partial(&run, &Question::Thread(10)).run.sums.waits[0].waker_comm, "");
}

#[test]
fn an_outlier_of_a_thread_that_is_summed_is_explained_all_the_same() {
    let mut run = one_slow_call().build();
    let whole = explain_part(&partial(&run, &Question::Outlier(1)));
    let mut crowd = Crowd::default();
    let group = crowd.group("sh");
    run.threads.retain(|thread| thread.tid != 10);
    crowd.add(&ThreadAccounts { tid: 10, ..run.threads[0].clone() }, group);
    run.sums.others = crowd.into_sums();
    let summed = explain_part(&partial(&run, &Question::Outlier(1)));
    assert_eq!(summed.scope.unwrap().threads, 1);
    assert_eq!((summed.wall_ns, summed.accounts), (whole.wall_ns, whole.accounts));
    let missing = PartialRun::new(&run, &Question::Thread(10)).err().unwrap().to_string();
    assert!(missing.contains("1 thread of 1 process summed"), "{missing}");
}
