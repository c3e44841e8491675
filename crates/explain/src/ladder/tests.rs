use model::{Account, Accounts, Blocked};

use super::*;
use crate::testing::benchmarks::{bench_case, bench_run, bench_step};

/// What a ladder of these steps says first, on two CPUs.
fn sentence(steps: Vec<BenchStep>) -> String {
    let case = bench_case("t", steps);
    ladders(&case)[0].verdict(&case, Some(2)).unwrap().sentences[0].clone()
}

#[test]
fn each_case_of_a_run_has_the_verdicts_on_its_ladders() {
    let all = judge_ladders(&bench_run());
    let [workers, population] = &all[..] else { panic!("{all:#?}") };
    let [workers] = &workers[..] else { panic!("{workers:#?}") };
    assert_eq!((workers.along, workers.knee), (Along::Workers, Some(4)));
    assert!((workers.ratio.unwrap().estimate - 4.0).abs() < 1e-9, "{workers:?}");
    assert!(
        workers.sentences[1].ends_with("with 2 CPUs, both include run-queue delay"),
        "{workers:?}"
    );
    let knee = "knee: 4 processes (each does less than half of what 1 alone does)";
    assert_eq!(workers.sentences[2], knee);
    let [population] = &population[..] else { panic!("{population:#?}") };
    assert_eq!(
        (population.along, population.knee, population.law),
        (Along::Population, None, None)
    );
    let text = &population.sentences[0];
    assert!(text.starts_with("with 50,000 open AF_UNIX sockets: 2.40x the cost with 0"), "{text}");
    assert!(text.ends_with("system time per operation 2.56x"), "{text}");
}

#[test]
fn want_of_a_cpu_is_told_apart_from_waiting_for_each_other() {
    let alone = || bench_step(1, 0, 1_000.0, (100.0, 900.0));
    let queued = |step: BenchStep, part: f64| {
        let all = (step.wall_ns * u64::from(step.workers)) as f64;
        BenchStep { queued_ns: Some((all * part) as u64), ..step }
    };
    let both = |workers, each_ns, part| {
        let last = bench_step(workers, 0, each_ns, (100.0, 900.0));
        sentence(vec![queued(alone(), 0.0), queued(last, part)])
    };
    // Both CPUs are busy: four workers of 1 us each take 2 us.
    let text = both(4, 2_000.0, 0.5);
    assert!(text.starts_with("4 processes: 2.00x slower each"), "{text}");
    assert!(text.contains("2.00x the throughput of 1"), "{text}");
    assert!(text.ends_with("waiting for a CPU 50.0 % of their time: 2 CPUs for 4"), "{text}");
    // As many workers as CPUs: it is not they who take them from each other.
    let text = both(2, 2_000.0, 0.5);
    assert!(text.ends_with("waiting 50.0 % of their time for a CPU that another program had"));
    // Most of the time neither on a CPU nor ready for one.
    let text = both(4, 8_000.0, 0.1);
    assert!(text.ends_with("asleep 77.5 % of their time; --with-kernel says for what"), "{text}");
    // A kernel that does not count what is ready.
    let text = sentence(vec![alone(), bench_step(4, 0, 8_000.0, (100.0, 900.0))]);
    assert!(text.contains("waiting off the CPU 87.5 % of their time; --with-kernel"), "{text}");
    // More CPU time.
    let text = sentence(vec![alone(), bench_step(2, 0, 2_000.0, (100.0, 1_900.0))]);
    assert!(text.contains("system time per operation 2.11x: they get in each"), "{text}");
    assert!(!text.contains("user time"), "{text}");
}

#[test]
fn what_was_recorded_is_named() {
    let sleeping = |kind, ns| -> Accounts {
        [(Account::Blocked(kind), ns), (Account::User, 500), (Account::Kernel, 500)]
            .into_iter()
            .collect()
    };
    let steps = |kind| {
        let mut last = bench_step(4, 0, 8_000.0, (100.0, 900.0));
        last.accounts = Some(sleeping(kind, 3_000));
        vec![bench_step(1, 0, 1_000.0, (100.0, 900.0)), last]
    };
    let text = sentence(steps(Blocked::Rwsem));
    assert!(text.contains("serialised by a kernel lock (waiting for a kernel rw-sem"), "{text}");
    assert!(text.contains("75.0 % of their time"), "{text}");
    let text = sentence(steps(Blocked::Futex));
    assert!(text.contains("serialised by a lock of their own"), "{text}");
    // What a single worker waits for as much does not explain why four are slower.
    let mut equal = steps(Blocked::PipeRead);
    equal[0].accounts = Some(sleeping(Blocked::PipeRead, 3_000));
    let text = sentence(equal);
    assert!(!text.contains("pipe") && text.contains("for nothing in particular"), "{text}");
    let mut spinning = steps(Blocked::Rwsem);
    spinning[1].accounts = Some([(Account::Spin, 800), (Account::User, 200)].into_iter().collect());
    assert!(sentence(spinning).contains("serialised by a kernel spinlock"));
}

#[test]
fn what_its_rounds_do_not_agree_on_is_not_called_slower() {
    let mut last = bench_step(2, 0, 1_500.0, (100.0, 900.0));
    for (n, round) in last.rounds.iter_mut().enumerate() {
        round.rate *= if n % 2 == 0 { 0.6 } else { 2.0 };
    }
    let text = sentence(vec![bench_step(1, 0, 1_000.0, (100.0, 900.0)), last]);
    assert!(text.starts_with("2 processes: too noisy to say how each fares ("), "{text}");
}

#[test]
fn what_scales_is_not_called_slower() {
    let steps = [1, 2, 4]
        .map(|n| bench_step(n, 0, 1_000.0, (100.0, 900.0)))
        .into_iter()
        .collect::<Vec<_>>();
    let case = bench_case("t", steps);
    let ladders = ladders(&case);
    assert_eq!(ladders.len(), 1);
    let verdict = ladders[0].verdict(&case, Some(8)).unwrap();
    assert!(verdict.sentences[0].starts_with("4 processes: no slower each (1.00x"), "{verdict:?}");
    let law = verdict.law.unwrap();
    assert!(law.contention.low < 0.01 && law.crosstalk.high < 0.01, "{law:?}");
    assert_eq!((verdict.knee, law.peak), (None, None));
    assert!(verdict.sentences[2].starts_with("no knee up to 4 processes"), "{verdict:?}");
}

#[test]
fn workers_and_population_make_a_ladder_each() {
    let steps = [0, 1_000].into_iter().flat_map(|population| {
        [1, 2, 4].map(|n| bench_step(n, population, 1_000.0, (100.0, 900.0)))
    });
    let case =
        BenchCase { population_of: Some("tasks".to_owned()), ..bench_case("t", steps.collect()) };
    let ladders = ladders(&case);
    let lengths: Vec<_> = ladders.iter().map(|l| (l.along, l.steps.len())).collect();
    let workers = (Along::Workers, 3);
    let population = (Along::Population, 2);
    assert_eq!(lengths, [workers, workers, population, population, population]);
}
