//! What makes two runs less comparable than they look.

use model::bench::merged_warnings;
use model::{Bench, BenchCase, BenchStep, Run};
use stats::quantile;

use crate::text::times;

/// Facts that move the cost of system calls, or say that it was another host.
const FACTS: [&str; 11] = [
    "kernel.release",
    "kernel.version",
    "kernel.command_line",
    "kernel.preemption",
    "cpu.model",
    "cpu.count",
    "cpu.online",
    "cpu.hypervisor",
    "memory.total_bytes",
    "clocksource.current",
    "thp.enabled",
];

/// Longer values are only said to differ.
const LONG: usize = 60;

/// A change of the machine's own speed worth a warning, as a part.
const DRIFT: f64 = 0.03;

/// The warnings.
pub fn warnings(a: &Run, b: &Run, pairs: &[(&BenchCase, &BenchStep, &BenchStep)]) -> Vec<String> {
    let mut warnings = different_facts(a, b);
    if let (Some(of_a), Some(of_b)) = (&a.bench, &b.bench) {
        warnings.extend(different_harness(a, b, of_a, of_b));
    }
    warnings.extend(machine(pairs));
    for (run, pick) in [(a, 0), (b, 1)] {
        let named: Vec<(String, &BenchStep)> = pairs
            .iter()
            .map(|(case, of_a, of_b)| {
                let step = if pick == 0 { of_a } else { of_b };
                (format!("{}, {}", case.id, case.step_name(step)), *step)
            })
            .collect();
        let of_run = merged_warnings(&named).into_iter();
        warnings.extend(of_run.map(|(place, text)| {
            let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
            format!("run {}{place}: {text}", run.id)
        }));
        let early = named.iter().filter(|(_, step)| step.ended_early).count();
        if early > 0 && early < named.len() {
            let all = named.len();
            warnings.push(format!(
                "run {}: {early} of {all} steps ended early, because their medians agreed; these \
                 have fewer rounds",
                run.id
            ));
        }
    }
    warnings
}

fn different_facts(a: &Run, b: &Run) -> Vec<String> {
    let one = |name: &&str| {
        let values = (a.fact(name).unwrap_or("unknown"), b.fact(name).unwrap_or("unknown"));
        match values {
            (a, b) if a == b => None,
            (a, b) if a.len().max(b.len()) > LONG => Some(format!("{name} differs")),
            (a, b) => Some(format!("{name} differs: {a} and {b}")),
        }
    };
    FACTS.iter().filter_map(one).collect()
}

fn different_harness(a: &Run, b: &Run, of_a: &Bench, of_b: &Bench) -> Vec<String> {
    let mut warnings = Vec::new();
    // The first word is the clock's name; its frequency is measured anew each time.
    let clock = |bench: &Bench| bench.clock.split_whitespace().next().unwrap_or("").to_owned();
    if clock(of_a) != clock(of_b) {
        warnings.push(format!("different clocks: {} and {}", clock(of_a), clock(of_b)));
    }
    if of_a.pinned != of_b.pinned {
        let pinned = if of_a.pinned { a } else { b };
        warnings.push(format!("only in run {} was each worker bound to a CPU", pinned.id));
    }
    if a.threads.is_empty() != b.threads.is_empty() {
        let recorded = if a.threads.is_empty() { b } else { a };
        warnings.push(format!("only run {} was recorded, which costs time", recorded.id));
    }
    if a.header.version != b.header.version {
        let (a, b) = (&a.header.version, &b.header.version);
        warnings.push(format!("different versions of whylag: {a} and {b}"));
    }
    warnings
}

/// Says so if the reference computation took longer in one of them.
fn machine(pairs: &[(&BenchCase, &BenchStep, &BenchStep)]) -> Option<String> {
    let references = |steps: Vec<&BenchStep>| {
        let rounds = steps.into_iter().flat_map(|step| &step.rounds);
        quantile::median(&rounds.map(|round| round.reference_ns).collect::<Vec<f64>>())
    };
    let a = references(pairs.iter().map(|(_, a, _)| *a).collect())?;
    let b = references(pairs.iter().map(|(_, _, b)| *b).collect())?;
    let ratio = b / a;
    ((ratio - 1.0).abs() > DRIFT && ratio.is_finite()).then(|| {
        format!(
            "the machine itself changed: a reference computation took {} as long in the second run",
            times(ratio)
        )
    })
}
