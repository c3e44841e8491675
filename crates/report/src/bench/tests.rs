use model::{Account, Accounts, Blocked, Histogram};

use super::*;
use crate::sample::{self, bench_step};

fn written(run: &Run, histograms: bool) -> String {
    let text = sample::written(|out| write(out, run, histograms, &Style::default()));
    sample::assert_fits(&text, 80);
    text
}

/// In one line, so that sentences can be looked for.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn case(steps: Vec<BenchStep>) -> BenchCase {
    BenchCase {
        id: "t".to_owned(),
        measures: "t".to_owned(),
        population_of: None,
        steps,
        stopped: None,
        shape: None,
    }
}

/// What a ladder of these steps says first, on two CPUs.
fn sentence(steps: Vec<BenchStep>) -> String {
    let case = case(steps);
    let ladders = ladder::ladders(&case);
    ladders[0].verdict(&case, Some(2)).unwrap().sentences[0].clone()
}

#[test]
fn a_run_is_written_in_full_within_80_columns() {
    let mut run = sample::bench_run();
    let bench = run.bench.as_mut().unwrap();
    bench.cases[0].steps[1].warnings.push("the hypervisor took 2.0 % of the CPUs".to_owned());
    let text = written(&run, false);
    let lines = flat(&text);
    for part in [
        "clock rdtsc at 2.596 GHz",
        "bound to no CPU, on 2 CPUs",
        "4 4,000,000 4.00 0.100 0.900 1.00 M 0.25x",
        "empty 1.0 ns 23 ns",
        "USL fit, n = 10 rounds a rung: contention",
        "with 2 CPUs, want of a CPU is in both",
        "knee: 4 processes (each does less than half of what 1 alone does)",
        "1 process, beside open AF_UNIX sockets:",
        "beside 50,000 open AF_UNIX sockets: 2.40x the cost beside 0",
        "system time per operation 2.56x",
        "the story's shape is present: 2.4 times the cost",
        "stopped: no more than 60000",
        "warning: 2 processes: the hypervisor took 2.0 %",
        "longest: 4.00 ms (4 processes, at 0.250 s)",
    ] {
        assert!(lines.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("linear, from"), "{text}");
    assert_eq!(written(&run, true).matches("linear, from").count(), 6);
}

#[test]
fn the_longest_bar_is_the_largest_throughput_or_cost() {
    let text = written(&sample::bench_run(), false);
    let bar = |row: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(row)).unwrap();
        line.matches('█').count()
    };
    // 1.33 M a second with 2 processes, 1 M with 1 and with 4.
    assert!(bar("2  ") > bar("4  ") && bar("4  ") > 0, "{text}");
    assert!(bar("50,000  ") > 2 * bar("10,000  "), "{text}");
}

#[test]
fn a_quantile_that_n_does_not_carry_is_not_printed() {
    let mut run = sample::bench_run();
    let bench = run.bench.as_mut().unwrap();
    let mut single = Histogram::new(bench.empty.single.precision());
    (0..300).for_each(|n| single.record(1_000_000 + n));
    bench.cases[0].steps[0].single = single;
    let text = written(&run, false);
    let row = text.lines().find(|line| line.contains("n too small")).unwrap();
    assert_eq!(row.matches("n too small").count(), 2, "{row}");
    assert!(row.trim_end().ends_with(" 300"), "{row}");
}

#[test]
fn want_of_a_cpu_is_told_from_waiting_for_each_other() {
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
    assert!(text.ends_with("asleep 77.5 % of their time; --with-kernel tells for what"), "{text}");
    // A kernel that does not count what is ready.
    let text = sentence(vec![alone(), bench_step(4, 0, 8_000.0, (100.0, 900.0))]);
    assert!(text.contains("waiting off the CPU 87.5 % of their time; --with-kernel"), "{text}");
    // Dearer on the CPU.
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
    let case = case(steps);
    let ladders = ladder::ladders(&case);
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
    let case = BenchCase { population_of: Some("tasks".to_owned()), ..case(steps.collect()) };
    let ladders = ladder::ladders(&case);
    let lengths: Vec<_> = ladders.iter().map(|l| (l.along, l.steps.len())).collect();
    let workers = (Along::Workers, 3);
    let population = (Along::Population, 2);
    assert_eq!(lengths, [workers, workers, population, population, population]);
    let mut run = sample::bench_run();
    run.bench.as_mut().unwrap().cases = vec![case];
    let text = flat(&written(&run, false));
    assert!(text.contains("beside 1,000 tasks: processes operations"), "{text}");
    assert!(text.contains("2 processes, beside 1,000 tasks: as cheap as beside 0"), "{text}");
}

#[test]
fn a_case_that_could_not_run_says_why() {
    let mut run = sample::bench_run();
    let stopped = Some("no disk here: set TMPDIR".to_owned());
    run.bench.as_mut().unwrap().cases = vec![BenchCase { stopped, ..case(Vec::new()) }];
    let text = written(&run, true);
    assert!(text.contains("  not measured: no disk here: set TMPDIR"), "{text}");
}

#[test]
fn equal_warnings_are_told_once_with_the_worst_figure() {
    let mut steps = [1, 2, 4].map(|n| bench_step(n, 0, 1_000.0, (100.0, 900.0)));
    for (step, figure) in steps.iter_mut().zip(["1.10", "1.30", "1.20"]) {
        step.warnings.push(format!("took {figure} times as long"));
    }
    steps[2].warnings.push("stolen".to_owned());
    let named: Vec<(String, &BenchStep)> =
        steps.iter().map(|step| (step.workers.to_string(), step)).collect();
    let told = merged_warnings(&named);
    assert!(told.contains(&(String::new(), "took 1.30 times as long".to_owned())), "{told:?}");
    assert!(told.contains(&("4".to_owned(), "stolen".to_owned())), "{told:?}");
    assert_eq!(told.len(), 2);
}

#[test]
fn machines_get_the_verdicts_beside_the_figures() {
    let value = json(&sample::bench_run());
    assert_eq!(value["cpus"], 2);
    let verdict = &value["cases"][0]["verdicts"][0];
    assert_eq!(verdict["along"], "workers");
    assert_eq!(verdict["knee"], 4);
    assert!((verdict["ratio"]["estimate"].as_f64().unwrap() - 4.0).abs() < 1e-9);
    assert!(verdict["law"]["contention"]["low"].is_f64());
    assert_eq!(value["cases"][0]["steps"][2]["workers"], 4);
    assert_eq!(value["cases"][1]["verdicts"][0]["along"], "population");
}

#[test]
fn many_cases_are_written_in_a_line_each() {
    let mut run = sample::bench_run();
    let bench = run.bench.as_mut().unwrap();
    let some = bench.cases.clone();
    bench.cases.extend(some.iter().cycle().take(tour::CASES).cloned());
    let stopped = BenchCase {
        steps: Vec::new(),
        stopped: Some("no such device".to_owned()),
        ..some[0].clone()
    };
    bench.cases.push(stopped);
    let text = written(&run, false);
    let bench = run.bench.as_ref().unwrap();
    let rows = text.lines().filter(|line| bench.cases.iter().any(|c| line.starts_with(&c.id)));
    assert_eq!(rows.count(), bench.cases.len(), "{text}");
    assert!(text.contains("1.50x  2 processes"), "{text}");
    assert!(text.contains("no such device"), "{text}");
}
