use explain::judge_ladders;
use model::Histogram;

use super::*;
use crate::sample::{self, bench_step};

fn written(run: &Run, histograms: bool) -> String {
    let text =
        sample::written(|out| write(out, run, &judge_ladders(run), histograms, &Style::default()));
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
        "empty 1.00 ns 23 ns",
        "USL fit, n = 10 rounds per step: contention",
        "with 2 CPUs, both include run-queue delay",
        "knee: 4 processes (each does less than half of what 1 alone does)",
        "1 process, with open AF_UNIX sockets:",
        "with 50,000 open AF_UNIX sockets: 2.40x the cost with 0",
        "system time per operation 2.56x",
        "the reported shape is present: 2.4 times the cost",
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
fn steps_of_workers_and_population_have_a_table_for_each_size() {
    let steps = [0, 1_000].into_iter().flat_map(|population| {
        [1, 2, 4].map(|n| bench_step(n, population, 1_000.0, (100.0, 900.0)))
    });
    let case = BenchCase { population_of: Some("tasks".to_owned()), ..case(steps.collect()) };
    let mut run = sample::bench_run();
    run.bench.as_mut().unwrap().cases = vec![case];
    let text = flat(&written(&run, false));
    assert!(text.contains("with 1,000 tasks: processes operations"), "{text}");
    assert!(text.contains("2 processes, with 1,000 tasks: as cheap as with 0"), "{text}");
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
fn machines_get_the_verdicts_beside_the_figures() {
    let value = json(&sample::bench_run(), &judge_ladders(&sample::bench_run()));
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
