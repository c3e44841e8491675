use explain::compare_benchmarks;
use model::{Run, RunId};

use super::*;
use crate::sample::{self, bench_run};

/// [`bench_run`] again, with this change to the steps of its first case.
fn compared(change: impl Fn(&mut [model::BenchStep])) -> BenchComparison {
    let mut second: Run = bench_run();
    second.id = RunId(13);
    change(&mut second.bench.as_mut().unwrap().cases[0].steps);
    compare_benchmarks(&bench_run(), &second, 0.05).unwrap()
}

fn twice_the_cost(step: &mut model::BenchStep) {
    for round in &mut step.rounds {
        round.median_ns *= 2.0;
        round.rate /= 2.0;
    }
}

fn written(comparison: &BenchComparison) -> String {
    let text = sample::written(|out| write(out, comparison, &Style::default()));
    sample::assert_fits(&text, 80);
    text
}

#[test]
fn the_summary_comes_first_and_each_step_has_a_line() {
    let comparison = compared(|steps| twice_the_cost(&mut steps[1]));
    let text = written(&comparison);
    let start = "Run 13 against run 12: slower in 1 of 6 steps: sem-sysv, 2 processes: 2.00x (";
    assert!(text.replace('\n', " ").starts_with(start), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("2 ")).unwrap();
    for part in ["1.53 us", "3.05 us", "2.00x", "<0.001", "10+10", "slower"] {
        assert!(row.contains(part), "{part}: {row}");
    }
    assert_eq!(text.matches("no difference").count(), 5, "{text}");
    let value = serde_json::to_value(&comparison).unwrap();
    assert_eq!(value["steps"][1]["verdict"], "slower");
    assert_eq!(value["steps"][0]["verdict"], "no_difference");
    assert_eq!(value["steps"][1]["median"]["n"][0], 10);
}

#[test]
fn what_is_insufficient_has_its_reason_below() {
    let text = written(&compared(|steps| {
        twice_the_cost(&mut steps[1]);
        steps[1].rounds.truncate(4);
    }));
    assert!(text.contains("10 + 4 rounds; it takes 5 + 5"), "{text}");
    let text = written(&compared(|steps| steps[1].rounds.clear()));
    assert!(text.contains("10 + 0 rounds; it takes 5 + 5"), "{text}");
}

#[test]
fn waiting_that_the_median_does_not_see_has_a_line_and_no_verdict() {
    let text = written(&compared(|steps| {
        steps[2].rounds.iter_mut().for_each(|round| round.rate /= 2.0);
    }));
    assert_eq!(text.matches("  + waiting  ").count(), 1, "{text}");
    assert!(text.contains("other programs on the CPUs do that as well"), "{text}");
}

#[test]
fn warnings_and_steps_of_one_run_alone_are_named() {
    let mut second = bench_run();
    second.id = RunId(13);
    let bench = second.bench.as_mut().unwrap();
    bench.pinned = true;
    bench.cases[1].steps.pop();
    let text = written(&compare_benchmarks(&bench_run(), &second, 0.05).unwrap());
    assert!(text.contains("warning: only in run 13 was each worker bound to a CPU"), "{text}");
    assert!(text.contains("only run 12: unix-socket: 1 process with 50,000"), "{text}");
}
