use model::{Fact, Target};

use super::*;
use crate::Style;
use crate::sample::{self, bench_run};

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

fn compared(b: &Run) -> Comparison {
    compare(&bench_run(), b, 0.05).unwrap()
}

fn written(comparison: &Comparison) -> String {
    let text = sample::written(|out| write(out, comparison, &Style::default()));
    sample::assert_fits(&text, 80);
    text
}

#[test]
fn what_became_slower_is_found_with_its_ratio() {
    let comparison = compared(&other(&[(2, 1.2)]));
    let verdicts: Vec<Verdict> = comparison.steps.iter().map(|step| step.verdict).collect();
    assert_eq!(verdicts[1], Verdict::Slower);
    assert_eq!(comparison.slower(), 1, "{verdicts:?}");
    let found = &comparison.steps[1].median;
    assert!(found.ratio.unwrap().contains(1.2), "{found:?}");
    assert_eq!(found.n, [10, 10]);
    assert!(found.p_adjusted.unwrap() >= found.p.unwrap());
    let text = written(&comparison);
    let start = "Run 13 against run 12: slower in 1 of 6 steps: sem-sysv, 2 processes: 1.20x (";
    assert!(text.replace('\n', " ").starts_with(start), "{text}");
    assert!(text.contains("10+10"), "{text}");
    let value = serde_json::to_value(&comparison).unwrap();
    assert_eq!(value["steps"][1]["verdict"], "slower");
    assert_eq!(value["steps"][0]["verdict"], "no_difference");
    assert_eq!(value["steps"][1]["median"]["n"][0], 10);
}

#[test]
fn a_difference_below_the_threshold_does_not_matter_however_sure() {
    let b = other(&[(1, 1.04), (2, 1.04), (4, 1.04)]);
    let comparison = compared(&b);
    assert!(comparison.steps[0].median.p_adjusted.unwrap() < 0.05);
    assert!(comparison.steps.iter().all(|step| step.verdict == Verdict::NoDifference));
    assert!(comparison.summary.contains("no difference beyond 5.0 % shown in 6 steps"));
    // What is above it, but within the noise of runs, is left undecided.
    let undecided = compared(&other(&[(1, 1.08)]));
    assert_eq!(undecided.steps[0].verdict, Verdict::Insufficient);
    assert!(undecided.steps[0].median.because.as_ref().unwrap().contains("repeat both"));
    assert!(undecided.summary.contains("1 undecided"), "{}", undecided.summary);
}

#[test]
fn few_rounds_are_insufficient_and_say_so() {
    let mut b = other(&[(2, 3.0)]);
    b.bench.as_mut().unwrap().cases[0].steps[1].rounds.truncate(4);
    let comparison = compared(&b);
    assert_eq!(comparison.steps[1].verdict, Verdict::Insufficient);
    let text = written(&comparison);
    assert!(text.contains("10 + 4 rounds; it takes 5 + 5"), "{text}");
    b.bench.as_mut().unwrap().cases[0].steps[1].rounds.clear();
    assert_eq!(compared(&b).steps[1].median.ratio, None);
    written(&compared(&b));
}

#[test]
fn p_is_adjusted_for_every_step() {
    let comparison = compared(&other(&[(2, 1.2)]));
    let all: Vec<&Judged> = comparison.steps.iter().map(|step| &step.median).collect();
    let ps: Vec<f64> = all.iter().map(|judged| judged.p.unwrap()).collect();
    let expected = multiple::benjamini_hochberg(&ps);
    let adjusted: Vec<f64> = all.iter().map(|judged| judged.p_adjusted.unwrap()).collect();
    assert_eq!(adjusted, expected);
    assert_eq!(ps.len(), 6);
}

#[test]
fn waiting_that_the_median_does_not_see_has_a_line_and_no_verdict() {
    let mut b = other(&[]);
    for round in &mut b.bench.as_mut().unwrap().cases[0].steps[2].rounds {
        round.rate /= 2.0;
    }
    let comparison = compared(&b);
    assert_eq!(comparison.steps[2].each.verdict, Verdict::Slower);
    assert_eq!(comparison.steps[2].verdict, Verdict::NoDifference);
    let text = written(&comparison);
    assert_eq!(text.matches("  + waiting  ").count(), 1, "{text}");
    assert!(text.contains("other programs on the CPUs do that as well"), "{text}");
    assert_eq!(comparison.slower(), 0);
}

#[test]
fn a_slower_machine_is_a_warning_and_no_finding() {
    let mut b = other(&[(1, 1.3), (2, 1.3), (4, 1.3)]);
    let steps = b.bench.as_mut().unwrap().cases.iter_mut().flat_map(|case| &mut case.steps);
    steps.flat_map(|step| &mut step.rounds).for_each(|round| round.reference_ns *= 1.3);
    let comparison = compared(&b);
    assert_eq!(comparison.slower(), 0);
    assert_eq!(comparison.steps[0].verdict, Verdict::Insufficient);
    let because = comparison.steps[0].median.because.as_ref().unwrap();
    assert!(because.contains("the machine itself took 1.30x as long"), "{because}");
    assert!(written(&comparison).contains("the machine itself changed"), "{comparison:?}");
}

#[test]
fn other_hosts_and_other_ways_to_measure_are_warnings() {
    let a = bench_run();
    let mut b = other(&[]);
    let fact = b.facts.iter_mut().find(|fact| fact.name == "kernel.release").unwrap();
    "5.4.0".clone_into(&mut fact.value);
    b.facts.push(Fact {
        name: "thp.enabled".into(),
        value: "always".into(),
        source: String::new(),
    });
    let bench = b.bench.as_mut().unwrap();
    bench.pinned = true;
    "clock_gettime in the vDSO".clone_into(&mut bench.clock);
    bench.cases[0].steps[0].warnings.push("the hypervisor took 5.0 % of the CPUs".into());
    bench.cases[0].steps[1].ended_early = true;
    bench.cases[1].steps.pop();
    let comparison = compare(&a, &b, 0.05).unwrap();
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
    assert_eq!(comparison.unmatched[0], ["unix-socket: 1 process beside 50,000"]);
    assert!(written(&comparison).contains("only run 12: unix-socket: 1 process beside 50,000"));
    assert!(compared(&other(&[])).warnings.is_empty());
}

#[test]
fn only_benchmarks_with_common_steps_can_be_compared() {
    let recording = sample::run();
    let error = compare(&bench_run(), &recording, 0.05).unwrap_err();
    assert_eq!(error, NotComparable::NoBenchmark(RunId(12)));
    assert!(error.to_string().contains("run 12 is no benchmark"), "{error}");
    let mut b = other(&[]);
    b.header.target = Target::Bench(vec!["other".to_owned()]);
    b.bench.as_mut().unwrap().cases.iter_mut().for_each(|case| "other".clone_into(&mut case.id));
    let error = compare(&bench_run(), &b, 0.05).unwrap_err();
    assert_eq!(error, NotComparable::NothingInCommon(RunId(12), RunId(13)));
}
