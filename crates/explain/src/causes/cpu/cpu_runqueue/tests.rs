use super::*;
use crate::cause::Absent;
use model::{Metric, RecorderPart, RunnerSum};

use crate::testing::{RunBuilder, SECOND, USER, presence, runner};

const PREEMPTED: Account = Account::RunnablePreempted;

/// 16 threads of process 10 share 2 CPUs for 8 s.
fn oversubscribed() -> RunBuilder {
    let mut builder = RunBuilder::new().length(8 * SECOND).cpus(2, 0, 8 * SECOND);
    for tid in 10..26 {
        builder = builder.thread(tid, 10, &[(USER, SECOND), (PREEMPTED, 7 * SECOND)]);
    }
    builder
}

#[test]
fn own_threads_are_counted_against_the_cpus() {
    let run = oversubscribed().runner(runner(10, 10, 4000, 112 * SECOND)).build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.get(PREEMPTED), 112 * SECOND);
    assert_eq!(claim.title, "main-10 (pid 10) has 16 runnable threads of its own on 2 CPUs");
}

#[test]
fn another_process_is_named_and_not_by_its_thread_if_its_own_name_is_known() {
    let run = || {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND)])
            .runner(runner(10, 66, 300, SECOND))
    };
    let title = |run: RunBuilder| examine(&Case::new(&run.build())).unwrap().title;
    let named = run().present(presence(66, "batch", 0, 1000));
    assert!(title(named).contains("while batch (pid 66) runs"));
    assert!(title(run()).contains("while runner-66 (a thread of pid 66) runs"));
}

#[test]
fn processes_of_one_program_are_not_two_programs() {
    let mut run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (PREEMPTED, 2 * SECOND)])
        .thread(20, 20, &[(USER, SECOND), (PREEMPTED, SECOND)])
        .runner(runner(10, 20, 300, SECOND))
        .build();
    run.processes.iter_mut().for_each(|process| process.comm = "epollsrv".into());
    let title = examine(&Case::new(&run)).unwrap().title;
    assert_eq!(title, "processes of epollsrv (pid 10 and 20) wait for each other's CPU");
}

/// A build beside a server: each of its processes has little of it.
#[test]
fn processes_of_one_name_are_told_together_and_those_recorded_are_no_others() {
    let mut run = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (PREEMPTED, 4 * SECOND)]);
    for tgid in 100..112 {
        run = run.runner(runner(10, tgid, 30, SECOND / 4)).present(presence(tgid, "rustc", 0, 9));
    }
    let run = run.runner(runner(10, 66, 30, SECOND / 2)).present(presence(66, "cron", 0, 9));
    let claim = examine(&Case::new(&run.build())).unwrap();
    assert!(claim.title.ends_with("waits for a CPU while 12 processes named rustc run"));
    assert_eq!(claim.fix, Some(FIX_OTHERS));
    let mut run = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (PREEMPTED, 4 * SECOND)]);
    for tgid in 100..104 {
        run =
            run.thread(tgid, tgid, &[(USER, SECOND)]).runner(runner(10, tgid, 30, 9 * SECOND / 10));
    }
    let claim = examine(&Case::new(&run.build())).unwrap();
    assert_eq!(claim.fix, Some(FIX_OWN));
    let told = "other processes that are recorded for 3.60 s, others for 0 ns";
    assert!(claim.chain.iter().any(|link| link.text.contains(told)), "{:?}", claim.chain);
}

#[test]
fn nobody_had_more_of_the_waiting_than_there_was() {
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND), (Account::Throttled, SECOND)])
        .thread(20, 20, &[(USER, SECOND), (PREEMPTED, SECOND)])
        .runner(runner(10, 66, 300, 3 * SECOND))
        .runner(RunnerSum { realtime: 1, ..runner(10, 66, 3, SECOND) })
        .build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.total(), SECOND, "none of process 20");
    let text = &claim.evidence[0].text;
    assert!(text.ends_with("had the CPU for 2.00 s of the waiting"), "{text}");
}

#[test]
fn how_far_a_sampled_time_may_be_off_is_said() {
    let run = oversubscribed().runner(runner(10, 10, 4000, 4 * SECOND));
    let run = run.off(RecorderPart::SystemCalls).build();
    let text = examine(&Case::new(&run)).unwrap().evidence[0].text.clone();
    // 2 sqrt(4 s * 1.048576 ms)
    assert!(text.contains("had the CPU for 4.00 s of the waiting (±130 ms, sampled)"), "{text}");
}

#[test]
fn where_cpus_are_idle_more_of_them_are_no_remedy() {
    let builder = || {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND)])
            .runner(runner(10, 10, 300, SECOND))
    };
    let idle = builder().cpus(2, 3 * SECOND, SECOND).build();
    let claim = examine(&Case::new(&idle)).unwrap();
    assert!(claim.fix.unwrap().contains("affinity mask") && claim.doubts.len() == 1);
    let busy = builder().cpus(2, SECOND, 3 * SECOND).build();
    assert!(examine(&Case::new(&busy)).unwrap().fix.unwrap().starts_with("Run no more busy"));
}

#[test]
fn threads_that_may_run_on_some_cpus_only_are_counted_against_those() {
    // Four CPUs, of which the last one is busy; two threads may use that one only.
    let run = |bound: RunBuilder| {
        let mut run = bound
            .length(2 * SECOND)
            .thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND)])
            .thread(11, 10, &[(USER, SECOND), (PREEMPTED, SECOND)])
            .runner(runner(10, 10, 300, 2 * SECOND))
            .cpus(4, 2 * SECOND, 0)
            .build();
        (run.sums.cpus[3].idle_ns, run.sums.cpus[3].busy_ns) = (0, 2 * SECOND);
        run
    };
    let bound = run(RunBuilder::new().bound(10, &[3], 2 * SECOND, 2 * SECOND));
    let claim = examine(&Case::new(&bound)).unwrap();
    assert_eq!(
        claim.title,
        "main-10 (pid 10) has 2 runnable threads of its own on CPU 3, and may run nowhere else"
    );
    assert!(claim.fix.unwrap().contains("widen what binds them"));
    assert!(claim.doubts.is_empty() && !claim.spare_cpus, "their CPU was never idle");
    let said = |claim: &Claim| claim.evidence.iter().any(|e| e.text.contains("may run on CPU 3"));
    assert!(said(&claim), "{:?}", claim.evidence);

    let free = run(RunBuilder::new());
    let claim = examine(&Case::new(&free)).unwrap();
    assert!(claim.title.contains("on the same CPU") && claim.spare_cpus, "{}", claim.title);
    assert!(!said(&claim));
    // One thread of many is bound: that is not why they wait.
    let other = run(RunBuilder::new().bound(10, &[3], SECOND / 2, SECOND));
    assert!(examine(&Case::new(&other)).unwrap().spare_cpus);
}

#[test]
fn cpus_are_listed_as_the_kernel_lists_them() {
    assert_eq!(numbers(&[1]), "CPU 1");
    assert_eq!(numbers(&[0, 1, 2, 3, 8, 10, 11]), "CPUs 0-3,8,10-11");
}

/// Findings about a server that waits for a CPU for 6 % of its time, behind its own threads.
fn found(waits: u64, idle_tenths: u64) -> usize {
    let poll = (Account::Blocked(model::Blocked::Poll), 80 * SECOND / 100);
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, 14 * SECOND / 100), (PREEMPTED, 6 * SECOND / 100), poll])
        .runner(runner(10, 10, waits, 6 * SECOND / 100))
        .cpus(2, idle_tenths * SECOND / 10, (40 - idle_tenths) * SECOND / 10);
    crate::explain(&run.build()).findings.len()
}

#[test]
fn short_waits_on_a_host_with_idle_cpus_are_the_price_of_waking() {
    let of_20_us = |idle_tenths| found(3_000, idle_tenths);
    assert_eq!((of_20_us(30), of_20_us(10), of_20_us(2)), (0, 0, 1));
    // Less than a slice: only where most CPUs were idle.
    let of_300_us = |idle_tenths| found(200, idle_tenths);
    assert_eq!((of_300_us(30), of_300_us(10), of_300_us(2)), (0, 1, 1));
    // Whole slices are waited for a CPU that others want, too.
    assert_eq!(found(20, 30), 1);
}

#[test]
fn without_a_measured_wait_no_quantiles_are_printed() {
    let run = oversubscribed().runner(runner(10, 10, 4000, 112 * SECOND));
    let run = run.values(Metric::RunQueueDelay, 5, &[0, 0]).build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert!(!claim.evidence.iter().any(|e| e.text.contains("fastest")), "{claim:?}");
}

#[test]
fn waking_on_an_idle_cpu_is_not_this() {
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (Account::RunnableWakeup, SECOND)])
        .runner(runner(10, 0, 30_000, SECOND))
        .build();
    let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
    assert!(missing.contains("no other thread was seen"), "{missing}");
}

#[test]
fn the_idle_part_is_left_out_of_the_claim() {
    let run = RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND)])
        .runner(runner(10, 0, 100, SECOND / 4))
        .runner(runner(10, 10, 100, SECOND * 3 / 4))
        .build();
    assert_eq!(examine(&Case::new(&run)).unwrap().lost.total(), SECOND * 3 / 4);
}

#[test]
fn the_recorder_is_no_culprit() {
    let run = || {
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (PREEMPTED, SECOND)]).runner(runner(
            10,
            1,
            100,
            SECOND / 4,
        ))
    };
    assert!(examine(&Case::new(&run().build())).is_err());
    let run = run().runner(runner(10, 66, 100, SECOND / 8)).build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.total(), SECOND / 8);
    assert!(claim.title.contains("runner-66"), "{}", claim.title);
}

#[test]
fn throttled_time_is_not_claimed() {
    let run =
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (Account::Throttled, SECOND)]).build();
    assert!(examine(&Case::new(&run)).is_err());
}

/// A script starts 200 processes in 4 s, each of which lives for `lives_ms`.
fn script(lives_ms: u64, runners: u32) -> Claim {
    let mut run = RunBuilder::new().thread(10, 10, &[(USER, SECOND / 2)]);
    let clone = Account::Syscall(model::Syscall::named("clone").unwrap());
    let ms = SECOND / 1_000;
    for tid in 100..300 {
        let ran = lives_ms / 4 * ms;
        run = run.thread(tid, tid, &[(USER, ran), (clone, ran), (PREEMPTED, 2 * ran)]).dead();
    }
    for tid in 100..100 + runners {
        run = run.runner(runner(tid, 200 + tid % runners, 1_000, 2 * (lives_ms / 4) * ms));
    }
    let mut run = run.build();
    for thread in run.threads.iter_mut().skip(1) {
        thread.first_ns = run.header.started_ns + SECOND;
        thread.last_ns = thread.first_ns + lives_ms * ms;
    }
    examine(&Case::new(&run)).unwrap()
}

#[test]
fn processes_that_live_for_a_moment_are_said_to_be_many() {
    let claim = script(8, 100);
    assert_eq!(
        claim.title,
        "50 processes a second, which live for 8.00 ms on average, wait for each other's CPU"
    );
    let said = "200 processes began and ended within the recording, and had 62 %";
    assert!(claim.chain.iter().any(|link| link.text.starts_with(said)), "{:?}", claim.chain);
    assert!(claim.chain.iter().any(|link| link.text.contains("50 % of it in execve")));
    assert!(claim.fix.unwrap().starts_with("Start fewer processes"));
    // One that runs all the time is what they wait for.
    assert!(!script(8, 1).title.contains("a second"));
    // What lives for longer does something of its own.
    assert!(!script(400, 100).title.contains("a second"));
}
