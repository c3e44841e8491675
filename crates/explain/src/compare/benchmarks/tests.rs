use super::*;
use crate::testing::RunBuilder;
use crate::testing::benchmarks::{bench_run, fact};

/// A second run, in which operations of these steps (of the first case, by workers) cost so much
/// more.
fn other(slower: &[(u32, f64)]) -> Run {
    let mut run = bench_run();
    run.id = RunId(13);
    for step in &mut run.bench.as_mut().unwrap().cases[0].steps {
        let factor = slower.iter().find(|(n, _)| *n == step.workers).map_or(1.0, |(_, f)| *f);
        for (n, round) in step.rounds.iter_mut().enumerate() {
            // No two rounds are equal, as in life.
            round.median_ns *= factor * (1.001 + n as f64 / 1e4);
            round.rate /= factor * (1.001 + n as f64 / 1e4);
        }
    }
    run
}

fn compared(b: &Run) -> BenchComparison {
    compare_benchmarks(&bench_run(), b, 0.05).unwrap()
}

#[test]
fn what_became_slower_is_found_with_its_ratio() {
    let comparison = compared(&other(&[(2, 1.2)]));
    let verdicts: Vec<Change> = comparison.steps.iter().map(|step| step.verdict).collect();
    assert_eq!(verdicts[1], Change::Slower);
    assert_eq!(comparison.slower(), 1, "{verdicts:?}");
    let found = &comparison.steps[1].median;
    assert!(found.ratio.unwrap().contains(1.2), "{found:?}");
    assert_eq!(found.n, [10, 10]);
    assert!(found.p_adjusted.unwrap() >= found.p.unwrap());
    let start = "Run 13 against run 12: slower in 1 of 6 steps: sem-sysv, 2 processes: 1.20x (";
    assert!(comparison.summary.starts_with(start), "{}", comparison.summary);
}

#[test]
fn a_difference_below_the_threshold_does_not_matter_however_sure() {
    let b = other(&[(1, 1.04), (2, 1.04), (4, 1.04)]);
    let comparison = compared(&b);
    assert!(comparison.steps[0].median.p_adjusted.unwrap() < 0.05);
    assert!(comparison.steps.iter().all(|step| step.verdict == Change::NoDifference));
    assert!(comparison.summary.contains("no difference beyond 5.0 % shown in 6 steps"));
    // What is above it, but within the noise of runs, is left undecided.
    let undecided = compared(&other(&[(1, 1.08)]));
    assert_eq!(undecided.steps[0].verdict, Change::Insufficient);
    assert!(undecided.steps[0].median.because.as_ref().unwrap().contains("repeat both"));
    assert!(undecided.summary.contains("1 undecided"), "{}", undecided.summary);
}

#[test]
fn few_rounds_are_insufficient_and_say_so() {
    let mut b = other(&[(2, 3.0)]);
    b.bench.as_mut().unwrap().cases[0].steps[1].rounds.truncate(4);
    let comparison = compared(&b);
    assert_eq!(comparison.steps[1].verdict, Change::Insufficient);
    let because = comparison.steps[1].median.because.as_ref().unwrap();
    assert_eq!(because, "10 + 4 rounds; it takes 5 + 5");
    b.bench.as_mut().unwrap().cases[0].steps[1].rounds.clear();
    assert_eq!(compared(&b).steps[1].median.ratio, None);
}

#[test]
fn p_is_adjusted_for_every_step() {
    let comparison = compared(&other(&[(2, 1.2)]));
    let all: Vec<&FigureComparison> = comparison.steps.iter().map(|step| &step.median).collect();
    let ps: Vec<f64> = all.iter().map(|figure| figure.p.unwrap()).collect();
    let expected = multiple::benjamini_hochberg(&ps);
    let adjusted: Vec<f64> = all.iter().map(|figure| figure.p_adjusted.unwrap()).collect();
    assert_eq!(adjusted, expected);
    assert_eq!(ps.len(), 6);
}

#[test]
fn waiting_that_the_median_does_not_see_makes_no_step_slower() {
    let mut b = other(&[]);
    for round in &mut b.bench.as_mut().unwrap().cases[0].steps[2].rounds {
        round.rate /= 2.0;
    }
    let comparison = compared(&b);
    assert_eq!(comparison.steps[2].each.verdict, Change::Slower);
    assert_eq!(comparison.steps[2].verdict, Change::NoDifference);
    assert_eq!(comparison.slower(), 0);
}

#[test]
fn a_slower_machine_is_a_warning_and_no_finding() {
    let mut b = other(&[(1, 1.3), (2, 1.3), (4, 1.3)]);
    let steps = b.bench.as_mut().unwrap().cases.iter_mut().flat_map(|case| &mut case.steps);
    steps.flat_map(|step| &mut step.rounds).for_each(|round| round.reference_ns *= 1.3);
    let comparison = compared(&b);
    assert_eq!(comparison.slower(), 0);
    assert_eq!(comparison.steps[0].verdict, Change::Insufficient);
    let because = comparison.steps[0].median.because.as_ref().unwrap();
    assert!(because.contains("the machine itself took 1.30x as long"), "{because}");
    let warned = comparison.warnings.iter().any(|text| text.contains("the machine itself changed"));
    assert!(warned, "{comparison:?}");
}

#[test]
fn other_hosts_and_other_ways_to_measure_are_warnings() {
    let a = bench_run();
    let mut b = other(&[]);
    let release = b.facts.iter_mut().find(|fact| fact.name == "kernel.release").unwrap();
    "5.4.0".clone_into(&mut release.value);
    b.facts.push(fact("thp.enabled", "always"));
    let bench = b.bench.as_mut().unwrap();
    bench.pinned = true;
    "clock_gettime in the vDSO".clone_into(&mut bench.clock);
    bench.cases[0].steps[0].warnings.push("the hypervisor took 5.0 % of the CPUs".into());
    bench.cases[0].steps[1].ended_early = true;
    bench.cases[1].steps.pop();
    let comparison = compare_benchmarks(&a, &b, 0.05).unwrap();
    let warnings = comparison.warnings.join("\n");
    for part in [
        "kernel.release differs: 6.18.0 and 5.4.0",
        "thp.enabled differs: unknown and always",
        "different clocks: rdtsc and clock_gettime",
        "only in run 13 was each worker bound",
        "run 13 (sem-sysv, 1 process): the hypervisor took",
        "run 13: 1 of 5 steps ended early",
    ] {
        assert!(warnings.contains(part), "{part}\n{warnings}");
    }
    assert_eq!(comparison.unmatched[0], ["unix-socket: 1 process with 50,000"]);
    assert!(compared(&other(&[])).warnings.is_empty());
}

#[test]
fn only_benchmarks_with_common_steps_can_be_compared() {
    let recording = RunBuilder::new().build();
    let error = compare_benchmarks(&bench_run(), &recording, 0.05).unwrap_err();
    assert_eq!(error, NotComparable::NoBenchmark(recording.id));
    assert!(error.to_string().contains("is no benchmark"), "{error}");
    let mut b = other(&[]);
    b.bench.as_mut().unwrap().cases.iter_mut().for_each(|case| "other".clone_into(&mut case.id));
    let error = compare_benchmarks(&bench_run(), &b, 0.05).unwrap_err();
    assert_eq!(error, NotComparable::NothingInCommon(RunId(12), RunId(13)));
}
