//! What differs between two hosts, two runs, or a run and now.
//!
//! Checks are compared as each says (see [`Compared`]), facts of the fingerprint by their text. A
//! fact that a check is about is not reported twice.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use model::{
    Check, CheckResult, Checkup, CheckupDiff, CheckupDifference, Compared, Fact, Run, Subject,
};

/// Measured numbers differ from this ratio on.
const RATIO: f64 = 1.5;
/// Longer texts are compared word by word.
const LONG: usize = 60;

/// Facts of the fingerprint, and the checks that are about the same; in the order of what they did
/// in practice. What is not listed comes last.
const RELEVANT: [(&str, &str); 37] = [
    ("clocksource.current", "clocksource"),
    ("clocksource.read_ns", "clock-read"),
    ("", "clock-read-contended"),
    ("", "vdso"),
    ("env.LD_BIND_NOW", ""),
    ("binary.binding", ""),
    ("", "lazy-binding"),
    ("cgroup.cpu.quota_us", "cpu-quota"),
    ("", "timer-slack"),
    ("", "scheduling"),
    ("", "governor"),
    ("", "idle-states"),
    ("", "mitigations"),
    ("kernel.release", ""),
    ("kernel.command_line", ""),
    ("kernel.preemption", "preemption"),
    ("thp.enabled", "thp"),
    ("thp.defrag", "thp-defrag"),
    ("sysctl.net.core.rmem_max", "rmem-max"),
    ("sysctl.net.core.rmem_default", "rmem-default"),
    ("sysctl.net.core.wmem_max", "wmem-max"),
    ("sysctl.net.core.somaxconn", "somaxconn"),
    ("sysctl.net.core.busy_poll", "busy-poll"),
    ("sysctl.net.core.netdev_max_backlog", "netdev-backlog"),
    ("sysctl.vm.swappiness", "swappiness"),
    ("sysctl.vm.zone_reclaim_mode", "zone-reclaim"),
    ("sysctl.vm.min_free_kbytes", "min-free"),
    ("sysctl.kernel.numa_balancing", "numa-balancing"),
    ("sysctl.kernel.sched_rt_runtime_us", "rt-throttling"),
    ("sysctl.kernel.sched_autogroup_enabled", "autogroup"),
    ("sysctl.kernel.timer_migration", "timer-migration"),
    ("sysctl.vm.max_map_count", "max-map-count"),
    ("cpu.model", ""),
    ("cpu.count", ""),
    ("cpu.hypervisor", ""),
    ("memory.total_bytes", ""),
    ("binary.build_id", ""),
];

/// Facts that differ between any two hosts or processes and say nothing.
const MEANINGLESS: [&str; 3] = ["clocksource.available", "swaps", "kernel.version"];

/// In place of a value that one of the two does not have.
const NOT_THERE: &str = "(not set)";

/// One of the two that are compared.
pub struct Side {
    name: String,
    checks: Vec<Check>,
    facts: Vec<Fact>,
}

impl Side {
    /// A run, which has facts only.
    pub fn of_run(run: &Run) -> Side {
        let name = format!("run {}", run.id);
        Side { name, checks: Vec::new(), facts: run.facts.clone() }
    }

    /// What `whylag doctor` said; `name` is the file, or empty for now.
    pub fn of_checkup(checkup: Checkup, name: &str) -> Side {
        let name = match name {
            "" => format!("{} now", checkup.host),
            file => format!("{} ({file})", checkup.host),
        };
        Side { name, checks: checkup.checks, facts: checkup.facts }
    }
}

/// Compares.
pub fn compare_checkups(first: &Side, second: &Side) -> CheckupDiff {
    let mut found: Vec<(usize, CheckupDifference)> = Vec::new();
    let mut compared = 0;
    let mut checked: Vec<&str> = Vec::new();
    for (a, b) in pairs(&first.checks, &second.checks, |check| &check.id) {
        checked.push(&a.id);
        if a.verdict == CheckResult::Unknown || b.verdict == CheckResult::Unknown {
            continue;
        }
        compared += 1;
        if !differs(a, b) {
            continue;
        }
        let is_bad = a.verdict == CheckResult::Bad || b.verdict == CheckResult::Bad;
        let rank = rank(&a.id).unwrap_or(RELEVANT.len());
        let rank = if is_bad { rank.min(1) } else { rank };
        found.push((
            rank,
            CheckupDifference {
                name: a.id.clone(),
                first: a.fact.clone(),
                second: b.fact.clone(),
                matters: true,
                is_bad: a.verdict != CheckResult::Bad && b.verdict == CheckResult::Bad,
            },
        ));
    }
    for (fact, a, b) in values(&first.facts, &second.facts) {
        let label = label(fact);
        if checked.contains(&label) {
            continue;
        }
        compared += 1;
        if a == b || MEANINGLESS.contains(&fact) || !is_far(fact, a, b) {
            continue;
        }
        let rank = rank(label);
        let name = label.to_owned();
        let (first, second) = shortened(a, b);
        let matters = rank.is_some();
        let difference = CheckupDifference { name, first, second, matters, is_bad: false };
        found.push((rank.unwrap_or(RELEVANT.len() + 1), difference));
    }
    // Stable: within a rank the order of the report stays.
    found.sort_by_key(|(rank, _)| *rank);
    CheckupDiff {
        names: [first.name.clone(), second.name.clone()],
        differences: found.into_iter().map(|(_, difference)| difference).collect(),
        compared,
        left_out: left_out(first, second),
    }
}

/// Those of the first that the second has, too, with their partners.
fn pairs<'t, T>(first: &'t [T], second: &'t [T], name: fn(&T) -> &String) -> Vec<(&'t T, &'t T)> {
    let partners: HashMap<&String, &T> = second.iter().map(|one| (name(one), one)).collect();
    first.iter().filter_map(|one| Some((one, *partners.get(name(one))?))).collect()
}

/// (name, value in the first, value in the second) of all facts. One that only one of them has is
/// among them if the other has facts of the same group (`env`, `sysctl`), and so could have had it.
fn values<'t>(first: &'t [Fact], second: &'t [Fact]) -> Vec<(&'t str, &'t str, &'t str)> {
    fn group(fact: &Fact) -> &str {
        fact.name.split('.').next().unwrap_or_default()
    }
    fn by_name(facts: &[Fact]) -> HashMap<&str, &str> {
        facts.iter().map(|fact| (fact.name.as_str(), fact.value.as_str())).collect()
    }
    let groups = [first, second].map(|facts| facts.iter().map(group).collect::<HashSet<_>>());
    let of = [by_name(first), by_name(second)];
    let only_second = second.iter().filter(|fact| !of[0].contains_key(fact.name.as_str()));
    let all = first.iter().chain(only_second);
    let comparable = all.filter(|fact| groups.iter().all(|known| known.contains(group(fact))));
    let value = |side: usize, name: &str| of[side].get(name).copied().unwrap_or(NOT_THERE);
    comparable.map(|fact| (&*fact.name, value(0, &fact.name), value(1, &fact.name))).collect()
}

fn differs(a: &Check, b: &Check) -> bool {
    match (a.compared, b.compared) {
        (Compared::Setting, Compared::Setting) => a.fact != b.fact,
        (Compared::Measure(a), Compared::Measure(b)) => is_another_size(a, b),
        _ => a.verdict != b.verdict,
    }
}

fn is_another_size(a: f64, b: f64) -> bool {
    a.max(b) >= RATIO * a.min(b).max(f64::MIN_POSITIVE)
}

/// False for facts that are measured, and so are never quite the same, if they are close, or if one
/// was not measured.
fn is_far(fact: &str, a: &str, b: &str) -> bool {
    if !fact.ends_with("_ns") {
        return true;
    }
    matches!((a.parse(), b.parse()), (Ok(a), Ok(b)) if is_another_size(a, b))
}

fn rank(label: &str) -> Option<usize> {
    RELEVANT.iter().position(|(fact, check)| *fact == label || *check == label)
}

/// The check that is about a fact; else the fact's own name.
fn label(fact: &str) -> &str {
    let check = RELEVANT.iter().find(|(name, check)| *name == fact && !check.is_empty());
    check.map_or(fact, |(_, check)| check)
}

/// Of long texts only the words that the other does not have.
fn shortened(a: &str, b: &str) -> (String, String) {
    if a.len().max(b.len()) <= LONG {
        return (a.to_owned(), b.to_owned());
    }
    let without = |text: &str, other: &str| {
        let known: Vec<&str> = other.split_whitespace().collect();
        let words = text.split_whitespace().filter(|word| !known.contains(word));
        match words.collect::<Vec<_>>().join(" ") {
            none if none.is_empty() => "(the same without)".to_owned(),
            words => words,
        }
    };
    (without(a, b), without(b, a))
}

/// What only one of the two has: facts of a process, those of doctor, and checks that are unknown in
/// the other (what whylag can record is no fact of a host, and left out of it).
fn left_out(first: &Side, second: &Side) -> Vec<String> {
    let mut left_out = Vec::new();
    let mut missing = |what: &str, has: fn(&Side) -> bool| {
        for (one, other) in [(first, second), (second, first)] {
            if has(one) && !has(other) {
                left_out.push(format!("{what}: {} has none", other.name));
            }
        }
    };
    missing("checks", |side| !side.checks.is_empty());
    missing("facts of a process", |side| side.facts.iter().any(|f| f.name.starts_with("binary.")));
    for (one, other) in [(first, second), (second, first)] {
        let only_here = pairs(&one.checks, &other.checks, |check| &check.id).into_iter();
        let only_here = only_here.filter(|(here, there)| {
            here.verdict != CheckResult::Unknown
                && there.verdict == CheckResult::Unknown
                && here.subject != Subject::Recorder
        });
        let ids: Vec<&str> = only_here.map(|(check, _)| check.id.as_str()).collect();
        if !ids.is_empty() {
            left_out.push(format!("{}: unknown of {}", ids.join(", "), other.name));
        }
    }
    left_out
}
